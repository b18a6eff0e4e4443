"""Searches that begin with what is known: which configurations come first, and what is claimed."""

import numpy as np
import pytest
from scipy.stats import binom, loguniform, randint, uniform

from mfhpo import Fidelity
from mfhpo.experiment import Assignment, DistributionSpace, Ended, Experiment, SearchSettings
from mfhpo.search import DeclaredSearch, EarlierResults, HalvingSearch

SPACE = {"lr": loguniform(1e-4, 1.0), "depth": randint(1, 9), "kind": ["a", "b", "c"]}
EARLIER = [
    {"lr": 0.01, "depth": 3, "kind": "a"},
    {"lr": 7.0, "depth": 99, "kind": "b"},  # values that the space does not have
    {"depth": 5.0},
    {"other": 1},  # nothing that the space has
]


def settings(space=SPACE, seed=0, **known):
    options = {"budget": 40.0, "certify_share": 0.0} | known
    kind = options.pop("kind", HalvingSearch)
    declared = DeclaredSearch.of(options.pop("fidelity", None), **options)
    levels = declared.fidelity.levels
    return SearchSettings(
        declared=declared, levels=levels, space=DistributionSpace(space), seed=seed, kind=kind
    )


def begin(experiment):
    work = experiment.next()
    assert isinstance(work, Assignment)
    begun = work.begun(str(experiment.n_begun), experiment.order)
    experiment.apply(begun)
    return begun


def end(experiment, begun, value=0.5):
    experiment.apply(Ended(id=begun.id, order=experiment.order, value=value))


def first(experiment, n):
    """Begin and end so many evaluations."""
    found = []
    for _ in range(n):
        found.append(begin(experiment))
        end(experiment, found[-1], 1.0 / len(found))
    return found


def test_earlier_configurations_take_turns_with_random_ones():
    experiment, without = Experiment(settings(earlier=EARLIER)), Experiment(settings())
    found = first(experiment, 9)
    assert [one.origin for one in found] == ["earlier", "chosen"] * 3 + ["chosen"] * 3
    configurations = [one.configuration for one in found[::2]]
    assert configurations[0]["lr"] == pytest.approx(0.01)
    assert (configurations[0]["depth"], configurations[0]["kind"]) == (3, "a")
    assert configurations[1]["kind"] == "b"
    assert 1e-4 <= configurations[1]["lr"] <= 1.0, "drawn, as it lies outside"
    assert configurations[1]["depth"] in range(1, 9)
    assert configurations[2]["depth"] == 5
    # Every random configuration is the one that the search without it has in this place.
    plain = first(without, 9)
    for place in (1, 3, 5, 6, 7, 8):
        assert found[place].configuration == plain[place].configuration
    answer = experiment.answer()
    assert answer.earlier == 3
    assert "3 of the first came from earlier results, which are no evidence" in str(answer)
    assert answer.to_dict()["earlier"] == 3
    assert without.answer().earlier == 0
    assert "earlier" not in str(without.answer())


def test_several_workers_and_a_restart_go_through_them_once():
    given = settings(earlier=EARLIER)
    experiment = Experiment(given)
    open_ones = [begin(experiment) for _ in range(3)]
    again = Experiment.replay(given, experiment.events)
    assert again.next() == experiment.next()
    open_ones += [begin(again) for _ in range(4)]
    origins = [one.origin for one in open_ones]
    assert origins == ["earlier", "chosen"] * 3 + ["chosen"]
    assert len({repr(one.configuration) for one in open_ones}) == 7
    for one in open_ones:
        end(again, one)
    assert again.answer().earlier == 3


def test_a_resumed_search_with_more_sources_goes_on_with_the_next():
    experiment = Experiment(settings(earlier=EARLIER[:1]))
    first(experiment, 2)
    more = Experiment.replay(settings(earlier=EARLIER), experiment.events)
    assert begin(more).configuration["kind"] == "b"


def test_beliefs_are_drawn_around_on_the_scale_of_the_parameter():
    near, far = [], []
    for seed in range(30):
        given = settings(seed=seed, beliefs={"lr": 1e-2, "kind": "b", "depth": (4, 0.25)})
        for place, one in enumerate(first(Experiment(given), 8)):
            is_near = place % 2 == 0
            assert one.origin == ("belief" if is_near else "chosen")
            (near if is_near else far).append(one.configuration)
            assert not is_near or one.configuration["kind"] == "b"
    decades = np.log10([one["lr"] for one in near])
    assert np.mean(decades) == pytest.approx(-2, abs=0.15)  # four standard errors
    assert np.std(decades) == pytest.approx(0.4, rel=0.25)  # a tenth of four decades
    assert np.std(np.log10([one["lr"] for one in far])) > 1.0
    assert {one["depth"] for one in near[::2]} <= {2, 3, 4, 5, 6, 7}


def test_earlier_and_beliefs_leave_a_quarter_to_chance():
    found = first(Experiment(settings(earlier=EARLIER, beliefs={"lr": 1e-2})), 8)
    origins = [one.origin for one in found]
    assert origins[:6] == ["earlier", "belief", "earlier", "chosen", "earlier", "belief"]


def test_a_space_without_any_of_it_says_so():
    with pytest.raises(ValueError, match=r"earlier has no .*'depth', 'kind', 'lr'.*'other': 1"):
        Experiment(settings(earlier=EARLIER[3:])).next()
    with pytest.raises(ValueError, match=r"beliefs\['lr'\] must be a value of .*got 3.0"):
        Experiment(settings(beliefs={"lr": 3.0})).next()
    with pytest.raises(ValueError, match=r"beliefs\['rate'\] must be a value of"):
        Experiment(settings(beliefs={"rate": 0.1})).next()


def test_of_several_spaces_the_one_that_fits_is_taken():
    spaces = [{"kernel": ["rbf"], "C": uniform(0, 10), "gamma": uniform(0, 1)}]
    spaces.append({"kernel": ["linear"], "C": uniform(0, 5)})
    space = DistributionSpace(spaces)
    assert space.place({"kernel": "linear", "C": 2})["space"] == 1.0
    assert space.place({"kernel": "rbf", "C": 2})["space"] == 0.0
    assert "space" not in space.place({"C": 2}), "either may have it"
    drawn, _ = space.draw(space.place({"C": 2}), [0])
    assert drawn["C"] == pytest.approx(2.0)


@pytest.mark.slow
def test_certificates_keep_their_promise_with_sources_that_deceive():
    """Sources praise the worst configurations; an earlier value would certify them."""
    rng, wrong, certified, n = np.random.default_rng(0), 0, 0, 80
    space = {"x": [round(0.05 * k, 2) for k in range(20)]}
    rows = [{"x": 0.0, "acc": 99.0}, {"x": 0.05, "acc": 98.0}, {"x": 0.5, "acc": 0.0}]
    source = EarlierResults(rows, value="acc", direction="maximize")
    fidelity = Fidelity("epochs", levels=(1, 3))
    for seed in range(n):
        experiment = Experiment(
            settings(
                space, seed, fidelity=fidelity, budget=150.0, certify_share=0.6, earlier=[source],
                epsilon=0.05, delta=0.2, sigma=0.1, top=4,
            )
        )  # fmt: skip
        while isinstance(work := experiment.next(), Assignment):
            begun = begin(experiment)
            end(experiment, begun, work.configuration["x"] ** 2 + rng.normal(0.0, 0.1))
        answer = experiment.answer()
        if answer.certified:
            certified += 1
            arms = experiment.runner.policy.shortlist
            best = max(experiment.runner.configurations[arm]["x"] ** 2 for arm in arms)
            wrong += answer.params["x"] ** 2 < best - 0.05
        assert answer.earlier == 3
        assert "earlier" not in " ".join(answer.assumptions)
    assert certified > n / 4
    assert wrong <= binom.ppf(0.999, n, 0.2)
