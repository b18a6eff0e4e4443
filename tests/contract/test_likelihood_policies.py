from mfhpo.bias import Bias
from mfhpo.noise import Bounded, EstimatedNoise, Gaussian
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.identification.gradient import MFGrad
from tests.contract.policy_contract import PolicyContract
class TestTopTwo(PolicyContract):
    def make(self, problem): return MFTopTwo(problem, delta=0.01)
class TestTopTwoOrder(PolicyContract):
    bias = Bias.order(0.1, 0.1, 0.0)
    def make(self, problem): return MFTopTwo(problem, delta=0.01)
class TestTopTwoTol(PolicyContract):
    def make(self, problem): return MFTopTwo(problem, delta=0.01, epsilon=.2)
class TestTopTwoMeasure(PolicyContract):
    def make(self, problem): return MFTopTwo(problem, delta=0.01, measure=5)
class TestTopTwoEst(PolicyContract):
    noise = EstimatedNoise(); bias=None; costs=None
    def make(self, problem): return MFTopTwo(problem, delta=0.01, epsilon=None, pilot_arms=4)
class TestTopTwoEstMax(PolicyContract):
    noise = EstimatedNoise(); bias=None; costs=None
    def make(self, problem): return MFTopTwo(problem, delta=0.01, epsilon=None, pilot_arms=4, variant="max")
class TestTopTwoEstNoise(PolicyContract):
    noise = EstimatedNoise()
    def make(self, problem): return MFTopTwo(problem, delta=0.01)
class TestTopTwoGauss(PolicyContract):
    noise = Gaussian()
    def make(self, problem): return MFTopTwo(problem, delta=0.01)
class TestTopTwoBounded(PolicyContract):
    noise = Bounded(0.,1.)
    def make(self, problem): return MFTopTwo(problem, delta=0.01)
class TestGrad(PolicyContract):
    def make(self, problem): return MFGrad(problem, delta=0.01)
class TestGradOrder(PolicyContract):
    bias = Bias.order(0.1, 0.1, 0.0)
    def make(self, problem): return MFGrad(problem, delta=0.01)
class TestGradPub(PolicyContract):
    def make(self, problem): return MFGrad(problem, delta=0.01, stop="published", learning_rate=.25)
class TestGradEst(PolicyContract):
    noise = EstimatedNoise(); bias=None; costs=None
    def make(self, problem): return MFGrad(problem, delta=0.01, epsilon=None, pilot_arms=4)
class TestGradMax3(PolicyContract):
    def make(self, problem): return MFGrad(problem, delta=0.01, max_arms=3)
class TestGradGauss(PolicyContract):
    noise = Gaussian()
    def make(self, problem): return MFGrad(problem, delta=0.01)
