"""What an experiment tells its host: whether it is over, how long a wait is, what was foreign."""

from mfhpo.experiment import Ended, Experiment, RaceSettings, Wait
from mfhpo.regret.mf_ucb import MFUCB

ARMS = [{"x": 0}, {"x": 1}]


def _race(**options):
    return Experiment(RaceSettings.of(ARMS, **{"sigma": 1.0, "epsilon": 9.0, "seed": 0, **options}))


def _begin(experiment, name):
    wanted = experiment.next()
    if isinstance(wanted, Wait):
        return wanted
    experiment.apply(wanted.begun(name, experiment.order))
    return wanted


def _end(experiment, name, value=0.0, **content):
    experiment.apply(Ended(id=name, order=experiment.order, value=value, **content))


def test_it_is_over_whatever_is_under_way():
    experiment = _race(measure=2)
    for number in range(100):
        _begin(experiment, str(number))
    assert not experiment.finished
    for number in range(90):
        _end(experiment, str(number))
    assert (experiment.finished, len(experiment.open)) == (True, 10)


def test_a_wait_for_one_that_holds_back_many_is_told_apart():
    experiment = Experiment(RaceSettings.of(ARMS[:1], sigma=1.0, epsilon=0.1, measure=99, seed=0))
    _begin(experiment, "slow")
    number = 0
    while not isinstance(wait := _begin(experiment, str(number)), Wait):
        _end(experiment, str(number))
        number += 1
    assert wait.is_held_up
    assert wait.why.startswith("evaluation slow of candidate 0")


def test_a_race_for_rewards_certifies_nothing():
    experiment = _race(make=lambda problem, sign, options: MFUCB(problem))
    _begin(experiment, "a")
    _end(experiment, "a")
    assert not experiment.answer().certifies
