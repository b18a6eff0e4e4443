"""Studies of learning curves, for the tests of pruners."""

import optuna
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

# Curves at steps 1 and 3 (the check and the end). Gains .4 .1 .2 .3; the best ends at .9.
WORKED = [(0.3, 0.7), (0.8, 0.9), (0.4, 0.6), (0.1, 0.4)]


def study_of(curves, pruner, direction="maximize", steps=(1, 3), sign=1.0):
    study = optuna.create_study(direction=direction, pruner=pruner)
    for number, curve in enumerate(curves):
        add(study, number, [sign * value for value in curve], steps)
    return study


def add(study, x, values, steps=(1, 3), state=TrialState.COMPLETE, seed=None):
    params = {"x": float(x)}
    distributions = {"x": FloatDistribution(-1e6, 1e6)}
    if seed is not None:
        params["seed"], distributions["seed"] = seed, IntDistribution(0, 1000)
    study.add_trial(
        create_trial(
            state=state,
            value=0.0 if state == TrialState.COMPLETE else None,  # not what was reported: unused
            params=params,
            distributions=distributions,
            intermediate_values=dict(zip(steps, values, strict=True)),
        )
    )


def verdict(study, value, step=1, x=-1.0):
    trial = study.ask({"x": FloatDistribution(x, x)})
    trial.report(value, step)
    decision = trial.should_prune()
    study.tell(trial, state=TrialState.FAIL)
    return decision


def running(*values, number=10**6, x=-1.0):
    trial = create_trial(
        state=TrialState.RUNNING,
        params={"x": x},
        distributions={"x": FloatDistribution(-1e6, 1e6)},
        intermediate_values=dict(enumerate(values, start=1)),
    )
    trial.number = number
    return trial
