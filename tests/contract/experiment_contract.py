"""What every host of the engine promises, as tests that name the rules of an experiment.

    TestMyHost = conformance(MyHost())

A host runs a `Task` for real, and tells a `World` what its objective is asked for, and when that
ends. The engine is driven beside it by the same events, with the same settings: the host has to
begin what the engine asks for, to wait and to end when the engine does, and to give its answer.
What a host cannot show, it says in `cannot`.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from mfhpo import Fidelity
from mfhpo.certification.candidates import Candidate, Shortlist
from mfhpo.experiment import (
    Assignment,
    DistributionSpace,
    Ended,
    Experiment,
    Lost,
    RaceSettings,
    SearchSettings,
    ShortlistSettings,
    event_of,
    key_of,
)
from mfhpo.experiment.kinds.race import DeclaredRace
from mfhpo.racing.declaration import Declaration
from mfhpo.search import DeclaredSearch

NAN = float("nan")
DIED = "its worker died"
LEVELS = (1, 2, 4)

# Rules that a single driver has no part in, or that only some hosts have: who shows them.
ELSEWHERE = {
    "of several drivers and readers: tests/core/experiment": "R9 R11 R19 R20 D3 D5",
    "of several drivers: tests of the host": "R38 D10",
    "of hosts that enqueue, retry or learn levels late: tests/core/experiment": "R10 R14 R22 R32",
    "of policies: tests/core/racing": "R33",
}
RULES = {*(f"R{n}" for n in range(1, 40)), *(f"D{n}" for n in range(1, 11))}


@dataclass(frozen=True)
class Outcome:
    """What comes of an evaluation: None is an objective that raises.

    It takes `seconds`; at infinity it never ends. Its worker may die then, and something else may
    have been evaluated `instead`.
    """

    value: float | None
    seconds: float = 1.0
    dies: bool = False
    instead: Mapping[str, Any] | None = None


def noisy(configuration, level, n):
    """Return the value of the n-th evaluation of a configuration at a level: its x, and noise."""
    key = [n, level, sum(map(ord, key_of(configuration)))]
    shared, own = np.random.default_rng(n), np.random.default_rng(key)
    seconds = level * own.uniform(0.5, 3.0)
    noise = 0.02 * (shared.normal() + own.normal())
    return Outcome(configuration["x"] - 0.1 / level + noise, seconds)


def noisy_but(when, **given):
    """Return an objective some of whose outcomes are given, by x, level and number."""

    def objective(configuration, level, n):
        outcome = noisy(configuration, level, n)
        return replace(outcome, **given) if when(configuration["x"], level, n) else outcome

    return objective


@dataclass(frozen=True, kw_only=True)
class Task:
    """An experiment on the parameter x: a race among candidates, or a search of a space.

    Or candidates are a search's best, which promised their x, and one of them is certified.
    `objective` takes a configuration, the value of the level, and how many evaluations of it there
    were before. Without `sigma`, evaluations share replicates. The driver dies after each so many
    ends, with all that is under way.
    """

    objective: Callable[[Mapping[str, Any], int, int], Outcome] = noisy
    candidates: Sequence[Mapping[str, Any]] = tuple({"x": x} for x in (0.3, 0.9, 0.5))
    space: Mapping[str, list[Any]] | None = None
    levels: tuple[int, ...] = (1,)
    certifies: bool = False
    is_measured: bool = False
    limit: float | None = None
    bias: Any = None
    sigma: float | None = None
    epsilon: float | None = 0.1
    budget: float | None = None
    max_failures: int = 3
    seed: int = 0
    workers: int = 1
    dies_after: int | None = None

    @property
    def shares(self):
        return self.sigma is None and self.bias is None

    @property
    def fidelity(self):
        costs = "measured" if self.is_measured else tuple(map(float, self.levels))
        return Fidelity("epochs", levels=self.levels, costs=costs)

    @property
    def shortlist(self):
        ranked = sorted(self.candidates, key=lambda each: -each["x"])
        best = tuple(Candidate("", each, each["x"]) for each in ranked)
        return Shortlist(candidates=best, luckiest=0, about="", words="")

    def settings(self, host):
        """Return what the engine is told of the task."""
        seed, shares = host.seed_of(self), self.shares
        options = {"epsilon": self.epsilon, "budget": self.budget}
        options["max_failures"] = self.max_failures
        if self.certifies:
            options["blocks"] = True
            return ShortlistSettings(shortlist=self.shortlist, options=options, seed=seed)
        options["sigma"] = self.sigma
        if self.space is None:
            options |= {"fidelity": self.fidelity, "bias": self.bias}
            return RaceSettings.of(self.candidates, seed=seed, shares_replicates=shares, **options)
        options |= {"replicate": "the replicate" if shares else None, "certify_share": 0.5}
        declared, space = DeclaredSearch.of(self.fidelity, **options), host.space_of(self)
        return SearchSettings(declared=declared, levels=self.levels, space=space, seed=seed)


MANY = tuple({"x": round(0.05 * k, 2)} for k in range(12))
SPACE = {"x": [round(0.01 * k, 2) for k in range(90)]}
RACE = {"sigma": 0.03, "epsilon": 0.02}
CHEAP = {**RACE, "levels": LEVELS, "bias": (0.2, 0.1, 0.0)}
FINALISTS = {"candidates": MANY, "levels": LEVELS, "budget": 90.0}
SEARCH = {"space": SPACE, "levels": LEVELS, "budget": 120.0}
KINDS = {
    "race": RACE,
    "a budget": {**RACE, "epsilon": 0.0, "budget": 10.0},
    "cheap levels": CHEAP,
    "measured": {**CHEAP, "is_measured": True, "budget": 400.0},
    "blocks": {"epsilon": 0.02, "budget": 60.0},
    "finalists": FINALISTS,
    "independent finalists": {**FINALISTS, "sigma": 0.03},
    "search": SEARCH,
    "certify": {"certifies": True, "epsilon": 0.02, "budget": 60},
    "independent search": {**SEARCH, "sigma": 0.03},
}


def settings_of_finalists(task):
    """Return what Optuna and Ray tell the engine where cheap levels choose finalists; else None.

    A tenth of the budget is kept for the certificate, and half of it in scikit-learn.
    """
    if task.candidates is not MANY:
        return None
    names = "budget", "epsilon", "max_failures"
    options = {"delta": 0.05, **{name: getattr(task, name) for name in names}}
    declaration = Declaration.of(task.fidelity, task.sigma, None)
    key = "the replicate" if task.shares else None
    declared = DeclaredRace(declaration, options, make=None, replicate=key, compares="")
    given = {"levels": task.levels, "candidates": task.candidates, "seed": task.seed}
    searched = declared.search(task.candidates, task.levels)
    return SearchSettings(declared=searched, **given)


def restarted(experiment):
    """Return an experiment that has read the events of another one, as JSON."""
    stored = [json.loads(json.dumps(event.to_dict())) for event in experiment.events]
    return Experiment.replay(experiment.settings, map(event_of, stored))


class World:
    """What really happens: the log of a task's evaluations, by id."""

    def __init__(self, task):
        self.task = task
        self.log = []  # (what, id)
        self.begun = {}  # (configuration, level, replicate) by id
        self.outcomes = {}
        self.costs_of_losses = {}
        self.n_ended = 0
        self._n_begun = Counter()

    def begin(self, id, configuration, level, replicate=None):
        """Note that an evaluation begins, and return its outcome; the same if it goes on."""
        if id not in self.begun:
            self.log.append(("begun", id))
            self.begun[id] = (dict(configuration), level, replicate)
            kind = key_of(configuration), level
            self.outcomes[id] = self.task.objective(configuration, level, self._n_begun[kind])
            self._n_begun[kind] += 1
        return self.outcomes[id]

    def end(self, id):
        self.n_ended += 1
        self.log.append(("ended", id))

    def lose(self, id, cost=0.0):
        """Note that an evaluation will never end, and what is paid for it; None: as declared."""
        self.log.append(("lost", id))
        self.costs_of_losses[id] = cost

    @property
    def open(self):
        """Ids of what is under way."""
        over = {id for what, id in self.log if what in ("ended", "lost")}
        return [id for id in self.begun if id not in over]

    @property
    def driver_dies(self):
        """True once whenever it is time."""
        n = self.task.dies_after
        is_time = n is not None and self.n_ended % n == 0 and self.log[-1][0] == "ended"
        if is_time:
            self.log.append(("died", ""))
        return is_time

    def stopped_at(self, id):
        limit = self.task.limit
        return limit if limit is not None and self.outcomes[id].seconds > limit else None


class Host:
    """What the tests know of a host; a host's own derives from it."""

    cannot: Mapping[str, str] = {}  # by what a test needs, or a rule: why
    cuts = ""  # why mistakes are left out, where they are trials that somebody has stopped
    in_rounds = False  # whether all that is under way ends before anything begins

    def run(self, task: Task, world: World) -> Any:
        """Run a task; return the answer, or None if the host raises that there is none."""
        raise NotImplementedError

    def settings_of(self, task):
        """Return what the engine is told of a task."""
        return task.settings(self)

    def seed_of(self, task):
        """Return what the engine's seed is."""
        return task.seed

    def space_of(self, task):
        return DistributionSpace(task.space)

    def cost_of(self, answer, task):
        """Return an answer's cost, in the unit of the levels."""
        return answer.cost

    def configuration_of(self, answer):
        return answer.params


class Referee:
    """Drives the engine by what happened in a world, and compares."""

    def __init__(self, host, task, world):
        self.host, self.task, self.world = host, task, world
        self.experiment = Experiment(host.settings_of(task))
        self.claims = {}
        self.open = set()
        self.replicates = {}  # by the replicate that the host has shown

    def compare(self, answer):
        before, asks_after = "begun", ("begun",) if self.host.in_rounds else ("begun", "ended")
        for what, id in self.world.log:
            if what in ("ended", "lost") and before in asks_after:
                self.check_that_no_worker_is_idle()
            getattr(self, what)(id)
            before = "died" if (before, what) == ("died", "lost") else what
        if not (self.open and self.host.in_rounds):  # else a round was interrupted
            self.check_that_no_worker_is_idle()
        if answer is None:
            assert self.experiment.answer().arm is None
        else:
            self.check_answer(answer)

    def check_that_no_worker_is_idle(self):
        """R37, R39: a worker waits only if nothing is left to begin."""
        if len(self.open) < self.task.workers:
            work = self.experiment.next()
            assert not isinstance(work, Assignment), f"nobody begins {work}"

    def begun(self, id):
        """R1, R8, R13: what is begun is what the engine wants now."""
        configuration, level, replicate = self.world.begun[id]
        work = self.experiment.next()
        assert isinstance(work, Assignment), f"{configuration} at {level}, but the engine: {work}"
        assert key_of(configuration) == key_of(work.configuration)
        assert level == self.task.levels[work.level]
        self.claims[id] = work.begun(id, self.experiment.order)
        self.open.add(id)
        self.experiment.apply(self.claims[id])
        self.check_replicate(work, replicate)
        self.check_budget()

    def check_replicate(self, work, shown):
        """R26, R27: different replicates are different, and shared ones the same."""
        if shown is not None:
            assert self.replicates.setdefault(shown, work.replicate) == work.replicate
            alike = [each for each in self.replicates.values() if each == work.replicate]
            assert len(alike) == 1 or not self.task.shares

    def check_budget(self):
        """R30, D9: what was begun is within the budget, whatever it gives, and losses are."""
        if self.task.budget is not None and not self.task.is_measured:
            lost = self.world.costs_of_losses
            paid = sum(lost[id] or 0.0 for id in self.claims.keys() & lost.keys())
            paid += sum(self.world.begun[id][1] for id in self.claims if lost.get(id) is None)
            assert paid <= self.task.budget

    def ended(self, id):
        outcome, stopped_at = self.world.outcomes[id], self.world.stopped_at(id)
        cost = (stopped_at or outcome.seconds) if self.task.is_measured else None
        if outcome.instead is not None and self.host.cuts:
            self._close(Lost, id, why=self.host.cuts, cost=cost, is_cut=True)
            return
        value = outcome.value if stopped_at is None else None
        content = {"value": value, "cost": cost, "stopped_at": stopped_at}
        self._close(Ended, id, configuration=outcome.instead, **content)

    def lost(self, id):
        self._close(Lost, id, why=DIED, cost=self.world.costs_of_losses[id])

    def died(self, _):
        """R35: a restart is a replay of the events, which are JSON meanwhile."""
        self.experiment = restarted(self.experiment)

    def _close(self, kind, id, **content):
        self.experiment.apply(kind(id=id, order=self.experiment.order, **content))
        self.open.remove(id)

    def check_answer(self, answer):
        """R34: the answer is the engine's."""
        expected = self.experiment.answer()
        assert key_of(self.host.configuration_of(answer)) == key_of(expected.params)
        equal = ["certified", "finished", "conditions", "compared", "trials", "failures"]
        if self.task.certifies:
            answer = getattr(answer, "certificate", answer)
            expected, equal[-2:] = expected.certificate, ["evaluations"]
        for name in equal:
            assert getattr(answer, name) == getattr(expected, name), name
        for name in ("mean", "interval", "delta", "epsilon"):
            assert getattr(answer, name) == pytest.approx(getattr(expected, name), nan_ok=True)
        if self.task.certifies:
            return
        assert self.host.cost_of(answer, self.task) == pytest.approx(expected.cost)


def conformance(host):
    """Return a test class of a host."""
    return type("Conformance", (Conformance,), {"host": host})


@pytest.mark.filterwarnings("ignore")
class Conformance:
    host: Host

    def play(self, kind, needs="", **options):
        """Run a task, check it against the engine; return the answer, the engine and the world."""
        for each in (kind, needs):
            if each in self.host.cannot:
                pytest.skip(self.host.cannot[each])
        task = Task(**{**KINDS[kind], **options})
        if task.workers > 1 and "several workers" in self.host.cannot:
            pytest.skip(self.host.cannot["several workers"])
        world = World(task)
        answer = self.host.run(task, world)
        referee = Referee(self.host, task, world)
        referee.compare(answer)
        return answer, referee, world

    def test_all_rules_are_shown_here_or_elsewhere(self):
        names = " ".join(name for name in dir(self) if name.startswith("test_"))
        names += " ".join(filter(None, (each.__doc__ for each in vars(Referee).values())))
        shown = set(re.findall(r"[RD]\d+", names.upper()))
        elsewhere = {rule for rules in ELSEWHERE.values() for rule in rules.split()}
        assert not shown & elsewhere
        assert shown | elsewhere == RULES

    @pytest.mark.parametrize("workers", [1, 3])
    @pytest.mark.parametrize("kind", KINDS)
    def test_r17_d4_d6_d9_it_chooses_waits_and_answers_as_the_engine(self, kind, workers):
        """Evaluations end in another order than they begin, failures among them."""
        answer, referee, _ = self.play(kind, workers=workers)
        assert answer.finished
        if "search" in kind or "finalists" in kind:
            assert referee.experiment.answer().certificate is not None
        else:
            assert answer.certified or kind == "a budget"

    @pytest.mark.parametrize(("sigma", "needs"), [(None, "types"), (0.03, "equal entries")])
    def test_r2_r4_d1_equal_entries_are_one_arm(self, sigma, needs):
        """1, 1.0 and True differ; NaN equals NaN, and its values count."""
        worth = {"int 1": 0.1, "float 1.0": 0.2, "bool True": 0.3, "float nan": 0.9}

        def objective(configuration, level, n):
            x = configuration["x"]
            return noisy({"x": worth[f"{type(x).__name__} {x}"]}, level, n)

        repeats = (float("nan"), 1, np.nan) if sigma else ()
        candidates = [{"x": x} for x in (1, NAN, 1.0, True, *repeats)]
        options = {"epsilon": 0.02, "budget": 80.0, "sigma": sigma, "objective": objective}
        answer, _, world = self.play("race", needs, candidates=candidates, **options)
        assert answer.compared == 4
        assert len({key_of(each) for each, *_ in world.begun.values()}) == 4
        assert answer.certified
        assert math.isnan(self.host.configuration_of(answer)["x"])

    def test_r3_r5_r7_no_configuration_of_a_space_is_begun_twice(self):
        few = {"x": [0.1, 0.5, 0.9]}
        _, referee, world = self.play("search", space=few, budget=60.0, workers=2)
        searched = [id for id, claim in referee.claims.items() if claim.purpose == "search"]
        begun = [(key_of(world.begun[id][0]), world.begun[id][1]) for id in searched]
        assert len(begun) == len(set(begun)) >= 3
        assert len(referee.experiment.runner.configurations) == 3

    @pytest.mark.parametrize("n_odd", [0, 3])
    @pytest.mark.parametrize("kind", ["race", "blocks"])
    def test_r12_r16_r18_d4_a_slow_one_is_neither_overtaken_nor_put_first(self, kind, n_odd):
        slow = noisy_but(lambda x, _, n: (x, n) == (0.9, n_odd), value=-1.0, seconds=40.0)
        _, referee, world = self.play(kind, objective=slow, workers=3)
        [odd] = [id for id, outcome in world.outcomes.items() if outcome.value == -1.0]
        if kind == "race":
            learned = [each.id for each in referee.experiment.history() if each.pull.arm == 1]
            assert learned.index(odd) == n_odd

    @pytest.mark.parametrize(
        ("kind", "value"), [("race", NAN), ("race", 1e60), ("blocks", math.inf), ("search", None)]
    )
    def test_r15_r23_a_failure_is_paid_and_no_value(self, kind, value):
        bound = 0.8 if kind == "search" else 9.0
        objective = noisy_but(lambda x, _, n: n == 1 or x > bound, value=value)
        answer, _, world = self.play(kind, objective=objective, workers=2)
        failed = [id for id in world.outcomes if world.outcomes[id].value is value]
        assert answer.failures == len(failed) > 0
        assert math.isfinite(answer.mean)

    @pytest.mark.parametrize("kind", ["race", "blocks", "finalists"])
    def test_r23_minus_infinity_is_the_worst_value(self, kind):
        """One is enough, and it is no failure."""
        target = KINDS[kind].get("levels", (1,))[-1]
        at_times = noisy_but(
            lambda x, level, n: x in (0.9, 0.5) and level == target and n % 3 == 1, value=-math.inf
        )
        answer, _, world = self.play(kind, "the worst value", objective=at_times)
        assert self.host.configuration_of(answer)["x"] not in (0.9, 0.5)
        assert math.isfinite(answer.mean)
        assert answer.failures == 0
        worst = [id for id in world.outcomes if world.outcomes[id].value == -math.inf]
        assert len({key_of(world.begun[id][0]) for id in worst}) == len(worst)

    @pytest.mark.parametrize("kind", ["race", "blocks", "search"])
    def test_r24_r25_if_all_fails_at_first_it_is_over(self, kind):
        options = {"budget": 1000.0, "max_failures": 2, "workers": 2}
        answer, _, world = self.play(kind, **options, objective=lambda *_: Outcome(None))
        assert answer is None or not answer.certified
        assert len(world.begun) <= 32

    def test_r34_the_first_certificate_stays(self):
        """What ends after it would overthrow it."""

        def objective(configuration, level, n):
            return Outcome(5.0 * configuration["x"] if n < 10 else -50.0, 1.0 + 0.01 * n)

        options = {"sigma": 0.01, "epsilon": 0.1, "objective": objective}
        answer, _, world = self.play("race", **options, workers=5)
        assert answer.certified
        assert self.host.configuration_of(answer) == {"x": 0.9}
        assert min(outcome.value for outcome in world.outcomes.values()) == -50.0

    def test_r16_r26_blocks_have_no_gaps(self):
        """Who is left is evaluated on each replicate once, whatever takes how long."""
        _, referee, _ = self.play("blocks", workers=3)
        blocks = defaultdict(list)
        for claim in referee.claims.values():
            blocks[key_of(claim.configuration)].append(claim.block)
        assert all(each == list(range(len(each))) for each in blocks.values())

    @pytest.mark.parametrize("kind", ["finalists", "independent search"])
    def test_r27_the_answer_rests_on_fresh_evaluations_alone(self, kind):
        answer, referee, world = self.play(kind)
        best = key_of(self.host.configuration_of(answer))
        fresh = [
            world.outcomes[id].value
            for id, claim in referee.claims.items()
            if claim.purpose == "certificate" and key_of(claim.configuration) == best
        ]
        assert answer.mean == pytest.approx(np.mean(fresh))

    def test_r28_r29_d8_the_answer_says_how_many_were_stopped(self):
        slow = noisy_but(lambda x, _, n: (x, n) == (0.9, 2), seconds=40.0)
        answer, *_ = self.play("race", "limits", objective=slow, limit=30.0, workers=2)
        assert "1 were stopped at a time limit" in " ".join(answer.assumptions)

    def test_r31_seconds_are_paid_as_they_are_measured(self):
        answer, _, world = self.play("measured", budget=30.0, epsilon=0.0)
        seconds = sum(each.seconds for each in world.outcomes.values())
        assert self.host.cost_of(answer, world.task) == pytest.approx(seconds)

    def test_r34_d4_the_answer_says_for_whom_it_waits(self):
        """One of the best candidate's never ends: others go on, and at last all wait."""
        hanging = noisy_but(lambda x, _, n: (x, n) == (0.9, 1), seconds=math.inf)
        answer, _, world = self.play("race", "hangs", objective=hanging, workers=3)
        assert not answer.finished
        assert re.search(r"waits for (evaluation|trial) .*'x': 0\.9", answer.reason)
        [hanging] = world.open
        assert hanging in answer.reason
        n_of_best = sum(configuration["x"] == 0.9 for configuration, *_ in world.begun.values())
        assert n_of_best <= 14  # ten that wait, the hanging one, and what began with the tenth

    @pytest.mark.parametrize("kind", ["race", "blocks", "search"])
    def test_r21_d7_a_loss_is_left_out_under_a_condition(self, kind):
        n_odd = 0 if kind == "search" else 1
        dying = noisy_but(lambda x, _, n: x > 0.4 and n == n_odd, dies=True)
        answer, _, world = self.play(kind, "deaths", objective=dying, workers=2)
        assert "lost" in dict(world.log)
        assert answer.failures == 0
        if kind == "race":
            assert "left out, because their process or the driver died" in str(answer)

    def test_r21_the_eleventh_loss_in_a_row_is_a_failure(self):
        dying = noisy_but(lambda x, *_: x == 0.9, dies=True)
        answer, _, world = self.play("race", "deaths", objective=dying, max_failures=1)
        assert answer.failures == 1
        assert sum(what == "lost" for what, _ in world.log) == 11
        assert self.host.configuration_of(answer) == {"x": 0.5}

    @pytest.mark.parametrize("dies_after", [7, 12])
    @pytest.mark.parametrize("kind", ["race", "cheap levels", "blocks", "finalists", "search"])
    def test_r35_r36_a_restart_goes_on_as_if_nothing_had_happened(self, kind, dies_after):
        *_, world = self.play(kind, "restarts", workers=3, dies_after=dies_after)
        assert ("died", "") in world.log
        assert max(Counter(id for what, id in world.log if what == "ended").values()) == 1

    def test_r6_d2_what_is_of_another_configuration_is_paid_and_nothing_else(self):
        other = noisy_but(lambda x, _, n: (x, n) == (0.9, 2), instead={"x": 0.5}, value=9.0)
        answer, _, world = self.play("race", "mistakes", objective=other)
        assert answer.failures == 0
        assert answer.mean < 2.0
        assert answer.trials == len(world.begun) - 1 == self.host.cost_of(answer, world.task) - 1

    def test_d2_many_such_evaluations_in_a_row_raise(self):
        other = Outcome(1.0, instead={"x": 7})
        if self.host.cuts:  # what somebody else stops ends the experiment
            answer, _, _ = self.play("race", "mistakes", objective=lambda *_: other)
            assert f"gave nothing, because {self.host.cuts}" in answer.reason
            return
        with pytest.raises(ValueError, match="the last 10 evaluations were of something else"):
            self.play("race", "mistakes", objective=lambda *_: other)
