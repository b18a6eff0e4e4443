"""The samplers, and races for them, that several test files share."""

import math

import numpy as np
import optuna
from optuna.trial import TrialState

from mfhpo_optuna import (
    IISESampler,
    MFEliminationSampler,
    MFGradSampler,
    MFLUCBSampler,
    MFSampler,
    MFTopTwoSampler,
    MFUCBSampler,
)

ARMS = [{"x": x} for x in (-0.9, -0.5, 0.0, 0.6)]
PULL = "mfhpo:pull"
CERTIFICATE = "mfhpo:certificate"
SO_FAR = "mfhpo:so_far"

BEST_ARM = {
    "IISE": IISESampler,
    "LUCB-C": MFLUCBSampler,
    "top-two": MFTopTwoSampler,
    "grad": MFGradSampler,
}
REWARD = {"UCB": MFUCBSampler, "elimination": MFEliminationSampler}
CLASSES = BEST_ARM | REWARD | {"choice": MFSampler}


class Recorder(optuna.samplers.RandomSampler):
    def __init__(self):
        super().__init__(seed=0)
        self.shown = []

    def sample_independent(self, study, trial, param_name, param_distribution):
        self.shown.append(study.get_trials())
        return super().sample_independent(study, trial, param_name, param_distribution)


class Clock:
    """A clock that goes on while somebody sleeps, until something happens after some seconds."""

    def __init__(self):
        self.now = 1000.0
        self._due, self._happens = math.inf, None

    def after(self, seconds, happens):
        self._due, self._happens = self.now + seconds, happens

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        if self.now >= self._due - 1e-9:
            self._due = math.inf
            self._happens()


CLOCK = Clock()


def takes(seconds):
    """Have an objective take so many seconds."""
    CLOCK.sleep(float(seconds))


def ended(trial):
    """The number of pulls that have ended, which is a trial's number without the answers."""
    trials = trial.study.get_trials(deepcopy=False)
    return sum(t.state.is_finished() and PULL in t.user_attrs for t in trials)


def noise(trial, scale=0.05):
    """The k-th value has the k-th noise, whatever the numbers of the trials."""
    return scale * np.random.default_rng(ended(trial)).normal()


def bowl(trial, sign=1.0):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return sign * (x**2 + 0.1 / epochs + noise(trial))


def valley(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return (x - 0.3) ** 2 + 0.2 / epochs + noise(trial)


def split_bowl(trial):
    trial.suggest_int("split", 0, 2**31 - 1)
    return bowl(trial)


def run(sampler, objective=bowl, n_trials=3000, direction="minimize", catch=(), **options):
    study = optuna.create_study(sampler=sampler, direction=direction, **options)
    study.optimize(objective, n_trials=n_trials, catch=catch)
    assert len(study.trials) < 3000, "the race did not end by itself"
    return study


def worker(storage, sampler, **options):
    """A study that several workers share, as one of them has it."""
    return optuna.create_study(
        storage=storage, study_name="shared", load_if_exists=True, sampler=sampler, **options
    )


def pulls(study):
    return [trial for trial in study.trials if PULL in trial.user_attrs]


def chosen(trial, key=PULL):
    """What a trial was to evaluate, whoever has chosen it with which arguments."""
    note = trial.user_attrs[key]
    own = {"trial", "study", "order", "worker", "arguments", "retry_of", "origin"}
    return {name: note[name] for name in note if name not in own}


def sequence(study):
    return [(chosen(trial), trial.params) for trial in pulls(study)]


def answers(study):
    """Those at the end of a race."""
    shown = [trial for trial in study.trials if CERTIFICATE in trial.user_attrs]
    return [trial for trial in shown if SO_FAR not in trial.user_attrs]


def answers_so_far(study):
    return [trial for trial in study.trials if SO_FAR in trial.user_attrs]


def shown(study, value, sign=1.0):
    """The value with which an answer beats those before the end; `sign` is -1 to maximise."""
    earlier = [sign * trial.value for trial in answers_so_far(study)]
    return sign * min([sign * value, *(np.nextafter(one, -np.inf) for one in earlier)])


def configurations(study, fidelity="epochs"):
    """What each arm number stands for; fails if it stands for two different configurations."""
    arms = {}
    for trial in pulls(study):
        params = {name: value for name, value in trial.params.items() if name != fidelity}
        known = arms.setdefault(trial.user_attrs[PULL]["arm"], params)
        assert {**known, **params} == {**params, **known}, "an arm changed"
        known.update(params)
    return arms


def arms_of(study):
    """`configurations` of a study whose trials all ask for the same parameters."""
    arms = configurations(study)
    for trial in pulls(study):
        assert trial.params.keys() - {"epochs"} == arms[trial.user_attrs[PULL]["arm"]].keys()
    return arms


def counted_for_their_arm(study):
    """The trials that evaluated what the first trial of their arm did."""
    arms = {}
    for trial in pulls(study):
        arms.setdefault(trial.user_attrs[PULL]["arm"], trial.params["x"])
    return [t for t in pulls(study) if arms[t.user_attrs[PULL]["arm"]] == t.params["x"]]


def finished(study):
    """What succeeded: pulls, whichever worker made them, parameters and values."""
    done = [trial for trial in pulls(study) if trial.state == TrialState.COMPLETE]
    return [(chosen(trial), trial.params, trial.value) for trial in done]


def certificate_of(trial):
    return trial.user_attrs[CERTIFICATE]
