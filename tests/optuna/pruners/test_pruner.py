import math
import pickle
import sys
import warnings
from collections import Counter
from functools import partial

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState

from mfhpo_optuna import IISEPruner, MFEliminationPruner
from tests.optuna.pruners.curves import WORKED, add, running, study_of, verdict


def small(**options):
    return IISEPruner(n_startup_trials=options.pop("n_startup_trials", 0), **options)


@pytest.mark.parametrize("make", [small, lambda: MFEliminationPruner(bias={1: 0.4})])
@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_worked_example(direction, sign, make):
    study = study_of(WORKED, make(), direction, sign=sign)
    assert verdict(study, sign * 0.45)  # reaches .45 + .4 < .9
    assert not verdict(study, sign * 0.55)  # may reach .95
    assert not verdict(study, sign * 0.0, step=0)  # no check there
    assert verdict(study, sign * 0.45, step=2)  # the bound of step 1 still holds
    assert not verdict(study, sign * 0.0, step=3)  # has finished anyway


def test_a_trial_is_judged_by_its_first_report_at_or_after_a_check():
    study = study_of(WORKED, small())
    trial = study.ask({"x": FloatDistribution(-1, -1)})
    assert not trial.should_prune()
    for step, value in enumerate([0.0, 0.8, 0.0]):
        trial.report(value, step)
        assert not trial.should_prune()
    assert verdict(study, 0.0, step=2)


def test_what_is_no_finished_curve_is_left_out():
    study = study_of(WORKED[:3], small())
    assert not verdict(study, 0.0)
    for state in (TrialState.PRUNED, TrialState.FAIL):
        add(study, 10, (0.0, 5.0), state=state)
    add(study, 11, (0.0, math.nan))
    add(study, 12, (0.0, math.inf))
    add(study, 13, (0.0,), steps=(1,))
    add(study, 14, (), steps=())
    study.enqueue_trial({"x": 0.0})
    assert not study.pruner.prune(study, running(0.0))
    add(study, 3, WORKED[3])
    assert study.pruner.prune(study, running(0.45))
    assert not study.pruner.prune(study, running(0.55))


def test_a_trial_is_not_stopped_while_its_latest_report_is_nan():
    study = study_of([(early, 0.0, final) for early, final in WORKED], small(), steps=(1, 2, 3))
    assert study.pruner.prune(study, running(0.0, 0.0))
    assert not study.pruner.prune(study, running(0.0, math.nan))
    assert not study.pruner.prune(study, running(math.nan))


def test_a_longer_curve_moves_the_final_step_and_a_declared_one_stays():
    longer = ((0.0, 0.0, 0.0), (1, 3, 27))
    moved, declared = study_of(WORKED, small()), study_of(WORKED, small(final_step=3))
    for study in (moved, declared):
        assert verdict(study, 0.0)
        add(study, 20, *longer)
    assert not verdict(moved, 0.0)
    assert verdict(declared, 0.0)
    for k in range(20):
        add(moved, 30 + k, (0.0, 0.5, 1.0), (1, 3, 27))
    assert verdict(moved, -1.0)


@pytest.mark.parametrize(
    "make", [small, MFEliminationPruner, partial(MFEliminationPruner, bias={1: 9.0, 3: 1.0})]
)
def test_where_few_curves_are_long_one_warning_says_which_final_step_would_do(make):
    """Trials that end by patience: few reach the longest one's end."""
    endings = [5, 27, 9, 7, 12] * 6

    def study_with(pruner):
        study = optuna.create_study(direction="maximize", pruner=pruner)
        for x, last in enumerate(endings):
            add(study, x, [x + 2.0 - 2.0 / step for step in range(1, last + 1)], range(1, last + 1))
            pruner.prune(study, running(0.0))
        return study

    words = r"of 20 COMPLETE .* give \w+Pruner final_step=9"
    with pytest.warns(UserWarning, match=words) as caught:
        study_with(make())
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verdict(study_with(make(final_step=9)), 1.0, step=3)


def test_warmup_steps_are_not_checked():
    curves = [(early, early, final) for early, final in WORKED]
    assert verdict(study_of(curves, small(), steps=(1, 3, 4)), 0.0, step=1)
    patient = study_of(curves, small(n_warmup_steps=2, reduction_factor=2), steps=(1, 3, 4))
    assert not verdict(patient, 0.0, step=1)
    assert verdict(patient, 0.0, step=3)


def descend(trial, sign=1.0):
    """Report and return a loss that is least near x = 0.3."""
    x, value = trial.suggest_float("x", -1, 1), math.nan
    for epoch in range(1, 28):
        value = sign * (abs(x - 0.3) + 1.0 / epoch)
        trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


@pytest.mark.parametrize(("direction", "sign"), [("maximize", -1.0), ("minimize", 1.0)])
@pytest.mark.parametrize(
    ("make", "share"),
    [
        (IISEPruner, 0.6),
        (lambda: MFEliminationPruner(bias={step: 1.0 / step for step in (1, 3, 9)}), 0.6),
        (MFEliminationPruner, 0.95),
    ],
    ids=["learned bounds", "declared bounds", "none"],
)
def test_easy_curves_cost_less_and_the_best_is_kept(make, share, direction, sign):
    sampler = optuna.samplers.TPESampler(seed=1)
    study = optuna.create_study(direction=direction, sampler=sampler, pruner=make())
    study.optimize(lambda trial: descend(trial, sign), n_trials=60)
    trials = study.get_trials(deepcopy=False)
    assert sum(len(trial.intermediate_values) for trial in trials) < share * 60 * 27
    nearest = min(trials, key=lambda trial: abs(trial.params["x"] - 0.3))
    assert study.best_trial.number == nearest.number


@pytest.mark.filterwarnings("ignore::mfhpo.BiasContradictedWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: small(coverage=0.6),
        lambda: MFEliminationPruner(bias={1: (0.0, 1.5), 3: (0.0, 1.0)}),
        MFEliminationPruner,
    ],
    ids=["learned bounds", "declared bounds", "none"],
)
def test_incremental_reading_equals_reading_anew(make):
    rng = np.random.default_rng(7)
    study = optuna.create_study(direction="maximize", pruner=make())
    under_way, stopped = [], 0
    for k in range(60):
        trial = study.ask({"x": FloatDistribution(0, 1)})
        for step, value in zip((1, 3, 9), np.sort(rng.normal(size=3)), strict=True):
            trial.report(value, step)
        under_way.append(trial)
        if k % 3 == 0:  # finish out of order, leave some running
            done = under_way.pop(int(rng.integers(len(under_way))))
            study.tell(done, 1.0)
        probe = running(float(rng.normal() - 1.0))
        decision = study.pruner.prune(study, probe)
        assert decision == make().prune(study, probe)
        stopped += decision
    assert stopped


def test_one_pruner_serves_several_studies_threads_and_copies():
    pruner, studies = IISEPruner(), []
    for seed in (0, 1):
        sampler = optuna.samplers.RandomSampler(seed=seed)
        study = optuna.create_study(pruner=pruner, sampler=sampler)
        study.optimize(descend, n_trials=40, n_jobs=4)
        studies.append(study)
    copy = pickle.loads(pickle.dumps(pruner))
    for study in studies:
        states = [trial.state for trial in study.get_trials(deepcopy=False)]
        assert states.count(TrialState.PRUNED) > 5
        assert states.count(TrialState.FAIL) == 0
        for value in (0.0, 0.2, 0.4, 0.6):
            assert copy.prune(study, running(value)) == pruner.prune(study, running(value))


def test_a_call_takes_no_longer_after_many_trials():
    lines = Counter()  # of Python that a call takes, loops included

    def count(frame, event, arg):
        lines[event, n_trials] += 1
        return count

    for n_trials in (50, 500):
        curves = np.sort(np.random.default_rng(0).normal(size=(n_trials, 4)), axis=1)
        study = study_of(curves, IISEPruner(), steps=(1, 3, 9, 27))
        study.pruner.prune(study, running(0.0))
        probe, before = running(0.0, 0.0, 0.0), sys.gettrace()
        sys.settrace(count)
        try:
            study.pruner.prune(study, probe)
        finally:
            sys.settrace(before)
    assert 0 < lines["line", 500] < 1.2 * lines["line", 50]
