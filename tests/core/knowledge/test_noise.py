from mfhpo.knowledge.noise import Bounded, SubGaussian, declared_sigmas


def test_one_scale_for_each_fidelity():
    noise = SubGaussian([0.5, 0.1])
    assert (noise.at(0, 2), noise.at(1, 2)) == (0.5, 0.1)
    assert noise == SubGaussian((0.5, 0.1))
    assert hash(noise) == hash(SubGaussian((0.5, 0.1)))
    assert declared_sigmas(SubGaussian(2), 3) == [2.0, 2.0, 2.0]
    assert declared_sigmas(Bounded(0.0, 1.0), 2) == [0.5, 0.5]
