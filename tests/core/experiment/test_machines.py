"""Whatever workers do, and in whatever order events are read, all who have read them know the same.

Rules R8, R9, R12 to R15, R19, R22, R35 and D4 to D6 of an experiment hold in the middle of it.
"""

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mfhpo.experiment import Assignment, Begun, Ended, Found
from tests.core.experiment.workers import CANDIDATES, KINDS, LEVELS, Team


class Happenings:
    """What may happen in an experiment that three workers share; `rng` says to whom."""

    def __init__(self, kind, seed):
        self.team = Team(KINDS[kind](), seed=seed)
        self.rng = self.team.rng

    @property
    def worker(self):
        return self.rng.choice(self.team.workers)

    @property
    def open_id(self):
        return self.rng.choice(sorted(self.team.open)) if self.team.open else None

    def begin(self):
        which = self.rng.randrange(3)
        begun = self.team.begin(which)
        if isinstance(begun, Begun):
            self.team.settle(which, begun.id)

    def begin_in_the_middle_of_a_write(self):
        """Begin, and settle before all that others wrote was read."""
        which = self.rng.randrange(3)
        begun = self.team.begin(which)
        if isinstance(begun, Begun):
            self.team.workers[which].experiment.settle(begun.id)

    def evaluate(self):
        """Some steps of the experiment, so that it comes to its end: one is late."""
        for _ in range(self.rng.randint(1, 8)):
            for _ in range(3):
                self.begin()
            for id in sorted(self.team.open)[1:4]:
                self.end(id)

    def end(self, id=None, **content):
        id = self.open_id if id is None else id
        if id is None:
            return
        begun, worker = self.team.open[id], self.worker
        if begun.levels is None and content.get("value", 0.0) is not None:
            content["level"] = self.team.level_of(worker, id)
        self.team.end(worker, id, **content)

    def fail(self):
        self.end(value=self.rng.choice([None, float("nan"), float("inf")]))

    def stop(self):
        self.end(value=None, stopped_at=2.0)

    def end_with_another_configuration(self):
        self.end(configuration=self.rng.choice([*CANDIDATES, {"y": 1}]))

    def lose(self):
        if self.team.open:
            self.team.lose(self.worker, self.open_id, is_sure=self.rng.random() < 0.5)

    def retry(self):
        """Begin a claim anew that was lost, or is taken to be, or has ended after all."""
        known = {**self.team.open, **self.team.ended}
        if known:
            begun, worker = known[self.rng.choice(sorted(known))], self.worker
            order, id = worker.experiment.order, self.team.new_id()
            again = replace(begun, id=id, order=order, retry_of=begun.id, origin="retry")
            self.team.open.pop(begun.id, None)
            self.team.write(worker, again)

    def end_late_or_again(self):
        """What was given up ends after all; an end is corrected, or told twice."""
        if self.team.ended:
            id, worker = self.rng.choice(sorted(self.team.ended)), self.worker
            order = worker.experiment.order
            self.team.write(worker, Ended(id=id, order=order, value=0.5, cost=1.0))

    def begin_with_several_levels(self):
        """A claim that nobody asked for, and may report at several levels."""
        worker, levels = self.worker, self.rng.choice([(0, 2), (2,), (0, 1, 2), (7,), ()])
        id, order, arm = self.team.new_id(), worker.experiment.order, self.rng.choice(CANDIDATES)
        claim = Begun(id=id, order=order, configuration=arm, levels=levels, replicate=order + 1000)
        self.team.write(worker, claim)
        if len(levels) > 1:
            self.team.end(worker, id, level=self.rng.choice([1, *levels]), last=False)

    def enqueue(self):
        worker = self.worker
        work = worker.experiment.next(fixed=(self.rng.choice(CANDIDATES), 0))
        if isinstance(work, Assignment):
            self.team.write(worker, work.begun(self.team.new_id(), worker.experiment.order))

    def read_twice(self):
        if self.team.written:
            self.worker.unread.append(self.rng.choice(self.team.written))

    def read_some(self):
        self.worker.read(self.rng.randint(1, 3), self.rng)

    def find(self):
        worker, number = self.worker, self.rng.randint(8, 12)
        id, order = str(self.rng.randrange(3)), worker.experiment.order
        self.team.write(worker, Found(id=id, order=order, replicates=number, levels=LEVELS))

    def restart(self):
        self.worker.restart(self.rng)

    def ask(self):
        """Asking changes nothing."""
        experiment = self.worker.experiment
        assert repr(experiment.next()) == repr(experiment.next())


OFTEN = ("begin", "evaluate", "end", "read_some")
NONE = ("worker", "open_id")
RARE = [name for name in vars(Happenings) if name[0] != "_" and name not in OFTEN + NONE]


def check_order(experiment):
    """R12, R15, R22: each kind is learned in the order in which its claims began."""
    places, learned = {}, defaultdict(list)
    for event in experiment.events:
        if isinstance(event, Begun):
            places.setdefault(event.id, (event.order, len(event.id), event.id))
    for result in experiment.history():
        if result.purpose in experiment.runner.of_means and result.pull.block is None:
            kind = result.pull.arm, result.pull.fidelity, result.purpose
            learned[kind].append(places[result.id])
    return all(kind == sorted(kind) for kind in learned.values())


def run(kind, seed, steps):
    happenings = Happenings(kind, seed)
    for _ in range(steps):
        often = happenings.rng.random() < 0.6
        getattr(happenings, happenings.rng.choice(OFTEN if often else RARE))()
    happenings.team.check()
    has_retries = any(getattr(event, "retry_of", None) for event in happenings.team.written)
    for worker in happenings.team.workers:
        assert has_retries or check_order(worker.experiment)


@pytest.fixture(autouse=True)
def _few_are_late(monkeypatch):
    """Keep states of short histories, too."""
    monkeypatch.setattr("mfhpo.experiment.experiment._MOST_LATE", 5)


def explore(kind, examples, longest):
    @hypothesis_settings(max_examples=examples)
    @given(seed=st.integers(0, 10**6), steps=st.integers(5, longest))
    def whatever_happens(seed, steps):
        run(kind, seed, steps)

    whatever_happens()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_workers_agree(kind):
    slow = {"game": 4, "blind_search_of_draws": 4, "search": 8, "search_without_blocks": 8}
    explore(kind, slow.get(kind, 12), 25)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_workers_agree_for_long(kind):
    explore(kind, 10 if kind == "game" else 60, 60)
