import warnings
from functools import partial

import optuna
import pytest
from optuna.trial import TrialState

from mfhpo import BiasContradictedWarning
from mfhpo_optuna import IISEPruner, MFEliminationPruner
from tests.optuna.pruners.curves import WORKED, add, running, study_of, verdict


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_a_pair_bounds_the_final_value_minus_the_value(direction, sign):
    bias = {1: (0.0, 0.5)} if sign > 0 else {1: (-0.5, 0.0)}
    study = study_of([], MFEliminationPruner(bias=bias), direction)
    other = study.ask()
    other.report(sign * 0.9, 1)  # ends at .9 or better
    assert verdict(study, sign * 0.35)
    assert not verdict(study, sign * 0.45)


def test_noise_widens_both_sides():
    study = study_of(WORKED, MFEliminationPruner(bias={1: 0.4}, noise=0.05))
    assert verdict(study, 0.39)  # .39 + .4 + .05 < .9 - .05
    assert not verdict(study, 0.41)


def test_running_trials_count_and_failed_and_pruned_ones_do_not():
    study = study_of([], MFEliminationPruner(bias={1: 0.4}, final_step=3))
    other = study.ask()
    other.report(1.0, 1)  # ends at .6 at least
    assert verdict(study, 0.1)
    study.tell(other, state=TrialState.FAIL)
    assert not verdict(study, 0.1)
    add(study, 10, (1.0,), steps=(1,), state=TrialState.PRUNED)
    assert not verdict(study, 0.1)
    add(study, 11, (1.0,), steps=(1,))  # COMPLETE, but not up to the final step
    assert not verdict(study, 0.1)
    add(study, 12, (1.0, 1.0))
    assert verdict(study, 0.1)


def test_bounds_as_a_function_are_asked_at_a_geometric_grid():
    asked = []

    def bias(step):
        asked.append(step)
        return 0.4 / step

    study = study_of([(0.5, 0.65, 0.72, 0.75)], MFEliminationPruner(bias=bias), steps=(1, 3, 9, 27))
    assert verdict(study, 0.3)  # .3 + .4 < .75
    assert not verdict(study, 0.62, step=3)  # .62 + .4 / 3
    assert verdict(study, 0.6, step=3)
    assert sorted(set(asked)) == [1, 3, 9]


@pytest.mark.parametrize(
    "make",
    [
        partial(MFEliminationPruner, bias={1: 0.4}),
        partial(IISEPruner, coverage=0.5, n_startup_trials=0),
    ],
)
def test_an_arm_is_not_stopped_by_its_own_repeats(make):
    pruner = make(replicate_params=["seed"])
    study = optuna.create_study(direction="maximize", pruner=pruner)
    add(study, 0, (0.8, 0.9), seed=0)
    assert not pruner.prune(study, running(-5.0, x=0.0))
    assert pruner.prune(study, running(-5.0, x=1.0))


def test_bounds_that_are_contradicted_are_widened_with_one_warning_each():
    study = study_of([(0.3, 0.7)], MFEliminationPruner(bias={1: 0.4}), "minimize", sign=-1.0)
    assert verdict(study, -0.25)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in range(1, 4):
            add(study, x, (0.0, -0.5 - 0.1 * x))
            verdict(study, -0.9)
    [warning] = caught
    assert warning.category is BiasContradictedWarning
    message = str(warning.message)
    assert message.startswith("bias[1] is contradicted by trial 2: it had 0 there and ended with")
    assert "widened to gains in [-0.6, 0.4]" in message
    add(study, 9, (-0.8, -0.9))
    assert not verdict(study, -0.2)  # to -1.0 at best: the others have shown that much


def test_without_bounds_nothing_is_stopped_before_ten_trials():
    study = study_of([(k / 10, 5.0) for k in range(9)], MFEliminationPruner())
    assert not verdict(study, -1e6)
    add(study, 10, (0.9,), steps=(1,), state=TrialState.PRUNED)  # shows where values begin
    assert verdict(study, -1e6)


def test_a_trial_that_ended_while_it_could_still_gain_is_no_finished_curve():
    """Its last value says no more than a report there; 2.0 at step 1 ends at 1.6 at least."""
    study = study_of([(2.0,)], MFEliminationPruner(bias={1: 0.4, 3: 0.1}), steps=(1,))
    add(study, 1, (2.0, 2.0), steps=(1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not verdict(study, 0.0)
        add(study, 2, (1.0, 1.0, 1.0), steps=(1, 3, 9))
        assert verdict(study, 0.5)
        assert not verdict(study, 0.7)  # the trials that ended early would have stopped it
