"""Whatever happens in whatever order, the race learns from each value once, whoever reads it."""

import contextlib
import time
import warnings
from datetime import datetime, timedelta
from unittest.mock import patch

import optuna
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from optuna.storages import InMemoryStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler, MFSampler, NashSampler, RCUCBSampler, SearchSampler
from mfhpo_optuna.study.trials.attributes import LOST_KEY
from tests.optuna.games.nash_games import PLAYERS, QUERY
from tests.optuna.samplers.races import PULL, worker

CHOICE = st.integers(0, 10**6)  # of one of those under way
VALUE = st.floats(0.0, 1.0)


class Clock(datetime):
    """The time of day in the storage and for who waits for trials; hours of it may pass at once."""

    ahead = timedelta(0)

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + cls.ahead


class Uptime:
    """The clock that nobody sets, by which the same hours pass."""

    @staticmethod
    def monotonic():
        return time.monotonic() + Clock.ahead.total_seconds()


READERS_OF_THE_CLOCK = ("optuna.storages._in_memory", "mfhpo_optuna.study.trials.under_way")


class Study(RuleBasedStateMachine):
    """Two workers with samplers of their own on one storage; one of them may be started again."""

    split = False
    directions = ("maximize",)

    def make(self):
        raise NotImplementedError

    def __init__(self):
        super().__init__()
        warnings.simplefilter("ignore")
        self.patched = contextlib.ExitStack()
        Clock.ahead = timedelta(0)
        for module in READERS_OF_THE_CLOCK:
            self.patched.enter_context(patch(f"{module}.datetime", Clock))
        self.patched.enter_context(patch("mfhpo_optuna.study.trials.under_way.time", Uptime))
        self.storage = InMemoryStorage()
        self.workers = [self.worker(), self.worker()]
        self.under_way = []
        for number in range(6):  # so that there are configurations to mistake
            self.evaluate(number % 2, 0.1 * number)

    def worker(self):
        return worker(self.storage, self.make(), directions=self.directions)

    def take(self, choice):
        return self.under_way.pop(choice % len(self.under_way)) if self.under_way else None

    @rule(worker=st.integers(0, 1), value=VALUE)
    def evaluate(self, worker, value):
        self.ask(worker, 2)
        self.tell(len(self.under_way) - 1, value)

    @rule(worker=st.integers(0, 1), asked=st.integers(0, 3))
    def ask(self, worker, asked):
        study = self.workers[worker]
        trial = study.ask()
        try:
            if asked > 0:
                self.suggest_first(trial)
            if asked > 1:
                self.suggest_rest(trial)
        except optuna.TrialPruned:
            study.tell(trial, state=TrialState.PRUNED)
            return
        self.under_way.append((study, trial))

    def suggest_first(self, trial):
        trial.suggest_float("x", -1, 1)

    def suggest_rest(self, trial):
        trial.suggest_int("epochs", 1, 9)
        if self.split:
            trial.suggest_int("split", 0, 2**31 - 1)

    @precondition(lambda self: self.under_way)
    @rule(choice=CHOICE, value=VALUE)
    def tell(self, choice, value):
        taken = self.take(choice)
        if taken is not None:
            study, trial = taken
            self.suggest_first(trial)
            self.suggest_rest(trial)
            study.tell(trial, self.values(value))

    def values(self, value):
        return value

    @precondition(lambda self: self.under_way)
    @rule(choice=CHOICE)
    def fail(self, choice):
        taken = self.take(choice)
        if taken is not None:
            taken[0].tell(taken[1], state=TrialState.FAIL)

    @precondition(lambda self: self.under_way)
    @rule(choice=CHOICE, again=st.booleans())
    def lose(self, choice, again):
        """The heartbeat stops; Optuna may make the trial anew."""
        taken = self.take(choice)
        if taken is not None:
            study, trial = taken
            self.storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            if again:
                RetryHeartbeatStaleTrialCallback()(study, study.trials[trial.number])

    @rule()
    def an_hour_passes(self):
        """All leases run out; who has them may tell all the same."""
        Clock.ahead += timedelta(hours=1)

    @rule(worker=st.integers(0, 1))
    def start_again(self, worker):
        old = self.workers[worker]
        self.workers[worker] = self.worker()
        self.under_way = [(s, t) for s, t in self.under_way if s is not old]

    @rule()
    def read_twice(self):
        for study in self.workers:
            study.sampler.known(study)

    def teardown(self):
        """In the end all trials end, and nothing holds back a value."""
        with self.patched:
            for trial in self.worker().trials:
                if trial.state == TrialState.RUNNING:
                    self.storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            self.each_value_counts_once()
            self.all_workers_say_the_same()

    def all_workers_say_the_same(self):
        """Those that have read the study bit by bit, and one that reads it now."""
        answers = [self.answer(study) for study in (*self.workers, self.worker())]
        told = [(answer.trials, answer.params, _ended(answer)) for answer in answers[:2]]
        assert told == [(answers[2].trials, answers[2].params, _ended(answers[2]))] * 2

    def is_pull(self, trial):
        return PULL in trial.user_attrs

    def answer(self, study):
        return study.sampler.recommendation(study)

    @invariant()
    def each_value_counts_once(self):
        study = self.worker()
        results = self.history(study)
        learned = [int(result.id) for result in results]
        assert len(learned) == len(set(learned))
        trials = study.get_trials(deepcopy=False)
        pulls = [trials[t.number] for t in trials if self.is_pull(t)]
        ended = {t.number for t in pulls if t.state.is_finished()}
        assert set(learned) <= ended
        if len(ended) == len(pulls):
            given_up = {t.number for t in pulls if LOST_KEY in t.user_attrs}
            done = {t.number for t in pulls if t.state == TrialState.COMPLETE}
            valued = {int(result.id) for result in results if self.has_value(result)}
            assert valued <= done <= valued | given_up

    def history(self, study):
        return study.sampler.known(study).experiment.history()

    def has_value(self, result):
        return result.observation.has_value


class Enqueueing(Study):
    @rule(worker=st.integers(0, 1), x=st.sampled_from([0.1, 0.2, 0.3]))
    def enqueue(self, worker, x):
        self.workers[worker].enqueue_trial({"x": x})


class Game(Study):
    directions = ("maximize", "maximize")

    def suggest_first(self, trial):
        trial.suggest_float("x", 0.0, 1.0, step=0.25)

    def suggest_rest(self, trial):
        trial.suggest_float("y", 0.0, 1.0, step=0.25)
        trial.suggest_int("seconds", 1, 9)

    def values(self, value):
        return value, 1.0 - value

    def answer(self, study):
        return study.sampler.equilibrium(study)

    def has_value(self, result):
        return result.observation[0] is not None

    def is_pull(self, trial):
        return "order" in trial.user_attrs.get(QUERY, {})


def _ended(answer):
    return getattr(answer, "finished", None)  # those with limits say it by their trials


def machine(name, make, base=Study, split=False, examples=7, steps=30):
    kind = type(name, (base,), {"make": lambda self: make(), "split": split})
    test = kind.TestCase
    test.settings = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    return pytest.mark.filterwarnings("ignore")(test)


TestIISE = machine("IISE", lambda: IISESampler("epochs", 4, epsilon=0.1, seed=0))
TestBlocks = machine(
    "Blocks", lambda: MFSampler("epochs", 4, replicate="split", epsilon=0.1, seed=0), split=True
)
TestSearch = machine("Search", lambda: SearchSampler("epochs", budget=90, seed=0), Enqueueing)
TestLimits = machine(
    "Limits", lambda: RCUCBSampler(4, [20.0, 80.0], reward_range=(0.0, 1.0), horizon=30, seed=0)
)
TestLeases = machine(
    "Leases", lambda: IISESampler("epochs", 4, epsilon=0.1, lease=60.0, seed=0), examples=4
)
TestGame = machine(
    "Game",
    lambda: NashSampler(PLAYERS, "seconds", budget=90, seed=0),
    base=Game,
    examples=2,  # its models are fitted whenever it is read
    steps=8,
)
TestGame.pytestmark = pytest.mark.slow
