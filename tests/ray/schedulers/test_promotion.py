"""Schedulers on trials of one seed each: a model promotes them, new trials judge the finalists."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from ray import tune
from ray.tune.experiment import Trial

from benchmarks.tune_clock import ReplayedCurves, Step, simulate
from mfhpo.experiment import Begun
from mfhpo_ray import IISEScheduler, MFEliminationScheduler, recommendation
from mfhpo_ray.experiment.configurations import decode
from mfhpo_ray.experiment.journal import RECOMMENDATION
from tests.ray.experiments import tuner_of

RATES = np.linspace(-4.0, 0.0, 40)
HEIGHTS = 0.9 - 0.1 * np.abs(RATES + 1.0)  # the best is about .1
CURVES = HEIGHTS[:, None] - 0.3 / np.arange(1, 28)


def trials(number=40, **more):
    """Trials of a nested configuration; their value depends on the rate, which is no seed's."""
    chosen = np.random.default_rng(0).permutation(40)[:number].tolist()
    return [{"arm": arm, "model": {"rate": 10.0 ** RATES[arm]}, **more} for arm in chosen]


def promoted(scheduler, configurations=None, *, sigma=0.002, **options):
    options = {"slots": 4, "max_t": 27, "checkpoints": True, **options}
    return simulate(
        scheduler,
        trials(seed=0) if configurations is None else configurations,
        ReplayedCurves(CURVES, sigma=sigma),
        **options,
    )


def lengths(run):
    return [trial.last_result.get("training_iteration", 0) for trial in run.trials]


@pytest.mark.parametrize("checkpoints", [True, False])
@pytest.mark.parametrize("kind", [IISEScheduler, MFEliminationScheduler])
def test_the_best_are_promoted_and_evaluated_again(kind, checkpoints):
    scheduler = kind(max_t=27)
    run = promoted(scheduler, checkpoints=checkpoints)
    answer = scheduler.recommendation()
    assert answer.searched
    assert HEIGHTS.max() - HEIGHTS[answer.config["arm"]] < 0.02
    assert answer.finished
    assert "seed" not in answer.config
    # Six trainings and a quarter of 40, more where trials begin anew.
    assert answer.cost == run.iterations <= 16 * 27 * (1.0 if checkpoints else 1.4) + 1e-9
    given, added = run.trials[:40], run.trials[40:]
    assert sum(length == 27 for length in lengths(run)[:40]) < 14
    assert {trial.config["arm"] for trial in added} == {
        candidate.params["arm"] for candidate in answer.certificate.candidates
    }
    seeds = [trial.config["seed"] for trial in added]
    assert sorted(seeds) == list(range(1, len(added) + 1))
    assert all(length == 27 for length in lengths(run)[40:])
    assert {trial.status for trial in given} == {Trial.TERMINATED}
    if checkpoints:
        for trial in run.trials:
            iterations = [event.iteration for event in run.history(trial.trial_id)]
            assert iterations == list(range(1, len(iterations) + 1))


def test_a_difference_beyond_the_noise_is_certified_and_the_budget_is_kept():
    scheduler = IISEScheduler(max_t=27, epsilon=0.05, budget=30 * 27)
    run = promoted(scheduler)
    answer = scheduler.recommendation()
    assert answer.certified
    assert answer.cost == run.iterations <= 30 * 27


@pytest.mark.parametrize("more", [{}, {"seed": 0.5}, {"seed": True}])
def test_without_a_seed_nothing_is_certified_and_the_answer_says_so(more):
    scheduler = IISEScheduler(max_t=27)
    run = promoted(scheduler, trials(**more))
    answer = scheduler.recommendation()
    assert len(run.trials) == 40
    assert not answer.certified
    assert answer.certificate is None
    assert "trials have no number under 'seed' that sets their seed" in answer.reason
    assert HEIGHTS.max() - HEIGHTS[answer.config["arm"]] < 0.02


def test_finalists_are_evaluated_though_all_trials_are_over():
    scheduler = IISEScheduler(max_t=27, epsilon=0.05, budget=1000.0)
    run = promoted(scheduler, trials(6, seed=7))
    assert lengths(run)[:6] == 6 * [27]
    assert len(run.trials) > 6
    assert 7 not in {trial.config["seed"] for trial in run.trials[6:]}
    assert scheduler.recommendation().certified


def test_trials_with_other_seeds_that_are_there_evaluate_the_finalists():
    configurations = [{**each, "seed": seed} for each in trials() for seed in range(6)]
    scheduler = MFEliminationScheduler(max_t=27)
    run = promoted(scheduler, configurations)
    assert len(run.trials) == 240
    assert scheduler.recommendation().certificate is not None


def test_after_a_restart_the_search_goes_on_with_what_was_observed(shared_journal):
    first, second = IISEScheduler(max_t=27), IISEScheduler(max_t=27)
    run = promoted(first, time_budget=60.0, sigma=0.0)
    again = promoted(second, sigma=0.0)
    assert again.iterations < run.iterations + again.iterations <= 16 * 27 + 4 * 27
    answer = second.recommendation()
    assert answer.finished
    assert answer.tried == 40
    assert answer.config["arm"] == np.argmax(HEIGHTS)


def test_new_trials_have_other_seeds_than_those_that_only_the_journal_knows(shared_journal):
    options = {"max_t": 27, "epsilon": 0.001, "budget": 40 * 27}
    first, second = IISEScheduler(**options), IISEScheduler(**options)
    runs = promoted(first, time_budget=230.0, sigma=0.01), promoted(second, sigma=0.01)
    told, new = ({trial.config["seed"] for trial in run.trials[40:]} for run in runs)
    assert told
    assert new
    assert told.isdisjoint(new)


def test_a_configuration_that_was_drawn_twice_is_judged_with_new_seeds():
    scheduler = MFEliminationScheduler(max_t=27)
    run = promoted(scheduler, trials(seed=0) + trials(seed=0), sigma=0.01)
    by_id = {trial.trial_id: trial for trial in run.trials}
    begun = [e for e in scheduler._course.experiment.events if isinstance(e, Begun)]
    judging = [e.id.partition(":")[0] for e in begun if e.purpose == "certificate"]
    assert judging
    assert all(by_id[each].config["seed"] for each in judging)


def test_the_answer_is_up_to_date_wherever_time_is_up(shared_journal):
    scheduler = IISEScheduler(max_t=27)
    promoted(scheduler, time_budget=3.5)
    noted = decode(shared_journal.read_one(RECOMMENDATION)["answer"])
    assert noted.tried == scheduler.recommendation().tried > 0


def test_what_cannot_be_promoted_raises():
    with pytest.raises(ValueError, match="nobody knows how many seconds trials take; give budget"):
        promoted(IISEScheduler(max_t=27, costs="measured"))

    class Suggesting(tune.search.Searcher):
        def suggest(self, trial_id):
            return {"arm": 0, "seed": 0}

    with pytest.raises(ValueError, match=r"trials that are all known.*suggests them one at a time"):
        promoted(MFEliminationScheduler(max_t=27), Suggesting(), num_samples=3)


def test_levels_are_as_long_as_those_of_tunes_schedulers():
    for scheduler in (IISEScheduler(), MFEliminationScheduler()):
        assert scheduler._meter.levels[-1] == 100
    with pytest.raises(ValueError, match="give either max_t"):
        IISEScheduler(max_t=9, levels=(1, 9))


class Failing(ReplayedCurves):
    """Curves of which some arms' trials fail, or show a value, at an iteration."""

    def __init__(self, arms, at, value=None):
        super().__init__(CURVES, sigma=0.002)
        self.arms, self.at, self.value = arms, at, value

    def step(self, config, iteration):
        if config["arm"] not in self.arms or iteration != self.at:
            return super().step(config, iteration)
        return Step(0.0, 1.0, failed=True) if self.value is None else Step(self.value, 1.0)


@pytest.mark.parametrize(
    ("n_bad", "at", "value"),
    [(1, 1, None), (1, 3, None), (10, 1, None), (10, 3, np.nan), (10, 3, np.inf), (1, 27, None)],
)
@pytest.mark.parametrize("kind", [IISEScheduler, MFEliminationScheduler])
def test_trials_that_fail_do_not_end_the_search(kind, n_bad, at, value):
    scheduler = kind(max_t=27)
    bad = {each["arm"] for each in trials()[:n_bad]}
    options = {"slots": 4, "max_t": 27, "checkpoints": True}
    run = simulate(scheduler, trials(seed=0), Failing(bad, at, value), **options)
    assert all(trial.is_finished() for trial in run.trials)
    answer = scheduler.recommendation()
    assert answer.certificate is not None
    assert answer.config["arm"] not in bad
    assert answer.cost > 13 * 27  # of 16
    assert max(t.last_result.get("training_iteration", 0) for t in run.trials[40:]) == 27


def test_where_all_others_fail_the_last_one_is_found():
    scheduler = IISEScheduler(max_t=27)
    others = {each["arm"] for each in trials(30)} - {3}
    run = simulate(scheduler, trials(30, seed=0), Failing(others, 1), slots=4, checkpoints=True)
    answer = scheduler.recommendation()
    assert run.iterations == 27
    assert answer.config["arm"] == 3
    assert answer.finished


def test_after_a_restart_no_trial_is_missed_that_had_failed(shared_journal):
    bad = Failing({each["arm"] for each in trials()[:5]}, 1)
    options = {"slots": 4, "max_t": 27, "checkpoints": True}
    simulate(IISEScheduler(max_t=27), trials(seed=0), bad, time_budget=30.0, **options)
    scheduler = IISEScheduler(max_t=27)
    simulate(scheduler, trials(seed=0), bad, **options)
    assert scheduler.recommendation().certificate is not None


def test_equal_configurations_are_one_arm_and_a_single_trial_is_enough():
    scheduler = IISEScheduler(max_t=27)
    run = promoted(scheduler, [*trials(seed=0), *trials(3, seed=0)])
    answer = scheduler.recommendation()
    assert answer.tried <= 40
    assert len(run.trials) > 43
    assert HEIGHTS.max() - HEIGHTS[answer.config["arm"]] < 0.02
    scheduler = IISEScheduler(max_t=27)
    promoted(scheduler, trials(1, seed=0))
    assert scheduler.recommendation().finished
    with pytest.raises(ValueError, match="some configurations have 1 of pilot_pulls=2"):
        promoted(IISEScheduler(max_t=27), [*trials(seed=0), *trials(seed=1)][:-1])


def test_what_a_budget_leaves_untried_is_not_said_to_have_no_values():
    scheduler = IISEScheduler(max_t=27, budget=28.0)
    promoted(scheduler)
    answer = scheduler.recommendation()
    assert "raise the budget" in answer.reason


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_a_real_run_pauses_resumes_and_adds_trials(tmp_path):
    log = tmp_path / "log"
    log.mkdir()

    def train(config):
        begin, checkpoint = 1, tune.get_checkpoint()
        if checkpoint is not None:
            with checkpoint.as_directory() as folder:
                begin = int(Path(folder, "epoch").read_text()) + 1
        for epoch in range(begin, 10):
            with open(log / f"{config['height']} {config['seed']}", "a") as file:
                file.write(f"{epoch} ")
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "epoch").write_text(str(epoch))
                value = config["height"] - 0.3 / epoch + 0.001 * (config["seed"] % 3)
                tune.report({"accuracy": value}, checkpoint=tune.Checkpoint.from_directory(folder))

    heights = np.linspace(0.2, 0.9, 16).round(3).tolist()
    scheduler = IISEScheduler(max_t=9, epsilon=0.02, budget=20 * 9)
    space = {"height": tune.grid_search(heights), "seed": 0}
    options = {"metric": "accuracy", "mode": "max", "scheduler": scheduler}
    results = tuner_of(train, tmp_path / "results", space=space, **options).fit()
    assert not results.errors
    answer = recommendation(results)
    assert (answer.certified, answer.config) == (True, {"height": 0.9})
    trained = {tuple(path.name.split()): path.read_text().split() for path in log.iterdir()}
    assert len(results) > 16
    for (
        _,
        seed,
    ), epochs in trained.items():  # none was trained twice, and the added ones to the end
        assert epochs == [str(epoch) for epoch in range(1, len(epochs) + 1)]
        assert seed == "0" or len(epochs) == 9
    lengths = [len(trained[str(height), "0"]) for height in heights]
    assert lengths[-1] == 9 > min(lengths)
    assert all(a <= b for a, b in itertools.pairwise(lengths[::8]))
