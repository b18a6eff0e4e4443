"""A search as a kind of experiment: a budget is spent on finding, then on certifying the best."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mfhpo._validation import shown
from mfhpo.certification.certification import MakeCertifier
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations, arm_of_baseline
from mfhpo.experiment.events import Begun, Found, Origin
from mfhpo.experiment.kinds.runner import Runner, Settings, Wanted, is_worst, levels_in_words
from mfhpo.knowledge.earlier import believed, near
from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace
from mfhpo.problem import Labels, Observation, Pull
from mfhpo.search.budgeted import SEARCH_BLOCK, BudgetedSearch
from mfhpo.search.declared import DeclaredSearch, has_levels
from mfhpo.search.model_search import ModelSearch
from mfhpo.search.policy import Replicate, SearchPolicy
from mfhpo.search.promotions import next_failed

_MOST_DRAWS = 1000  # until a configuration is new; without one, all are taken to be begun


class Space(Protocol):
    """A space that configurations are drawn from; `kinds` are what parameters are to a model."""

    kinds: dict[str, Numeric | OneOf]

    def draw(self, point: Point | None, key: Sequence[int]) -> tuple[dict[str, Any], Point]:
        """Return the configuration at a point, the rest drawn by a seed, and its own point."""
        ...

    def place(self, values: Mapping[str, Any]) -> Point:
        """Return the point of some values, without those that the space does not have."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Settings):
    """A search on a budget, whose best are certified.

    Parameters
    ----------
    declared, levels
        What its user declares, and the values of the fidelity.
    space, candidates
        Where configurations are drawn from, or the given ones. Neither: a host draws them.
    kind, make_certifier
        Chooses what to evaluate before the certificate, and makes the policy that certifies; None:
        planned looks.
    """

    declared: DeclaredSearch
    levels: Sequence[Any]
    space: Space | None = None
    candidates: Sequence[Mapping[str, Any]] = field(default=())
    kind: type[SearchPolicy] = ModelSearch
    make_certifier: MakeCertifier | None = None

    def runner(self) -> _SearchRunner:
        """Return a search to which nothing was told."""
        return _SearchRunner(self)


class _SearchRunner(Runner):
    """Runs a `BudgetedSearch`, and draws the configurations that it begins."""

    purpose = "search"
    policy: BudgetedSearch

    def __init__(self, settings: SearchSettings) -> None:
        self.sign, self._seed, self._space = settings.sign, settings.seed, settings.space
        levels, declared, space = settings.levels, settings.declared, settings.space
        n_drawn = declared.candidates if isinstance(declared.candidates, int) else 0
        given = settings.candidates or (n_drawn if space is None else ())
        self.configurations = Configurations(given, settings.describe)
        today, known = declared.baseline, self.configurations
        # It is begun by the search, unless it is among given configurations.
        self._own_baseline = dict(today) if isinstance(today, Mapping) and not len(known) else None
        self._baseline = None if self._own_baseline else arm_of_baseline(known, today)
        self.policy = declared.race(
            levels if has_levels(declared.fidelity) else (),
            seed=self._seed,
            sign=self.sign,
            params=self.configurations.__getitem__,
            kind=settings.kind,
            certifier=settings.make_certifier,
        )
        self.n_levels = len(levels)
        self.of_means = frozenset({"certificate"})
        self._in_blocks = declared.replicate is not None
        self.labels = Labels(fidelity=levels_in_words(declared.fidelity, levels))
        self.policy.labels = self.labels
        self._levels = levels
        self.draws = space is None and not len(self.configurations)
        is_given = space is None and not self.draws
        self.n_arms = len(self.configurations) if is_given else math.inf
        self._planned: dict[int, Point] = {}  # where draws are to lie, as the search chose
        self.search_replicate = SEARCH_BLOCK
        # By number of known arms, new arm and point: whether none was drawn that is new.
        self._exhausted: set[tuple[int, int, str]] = set()
        self._failed: set[int] = set()  # arms whose last evaluation failed
        self._first = _TriedFirst(declared.earlier, declared.beliefs, space)
        if space is not None:
            self._draw_given(space)

    def _draw_given(self, space: Space) -> None:
        """Draw as many configurations as are to be drawn at first."""
        search = self.policy.search
        search.space = SearchSpace(space.kinds)
        for arm in range(search.n_given):
            drawn = self._drawn(arm, None)
            if drawn is None:
                search.merge(arm)  # the space has no more
            else:
                self.configurations.add(drawn[0])
                search.describe(arm, drawn[1])

    def find(self, found: Found) -> None:
        if found.gone is not None:
            self.policy.search.drop(found.gone)
        if found.resumes is not None:
            self.policy.search.continues = found.resumes
            self.policy.budget.replan(found.budget)

    @property
    def finished(self) -> bool:
        """True if the search is over: its best is certified."""
        return self.policy.is_certified

    @property
    def is_spent(self) -> bool:
        return self.finished or (self._space is None and self.policy.finished)

    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        first = self._next_of_baseline(pending)
        if first is not None:
            return first
        if pending and self.policy.is_ahead(pending):
            return None
        pulls = self.policy.ask(1, pending)
        if not pulls:
            return None
        [pull] = pulls
        if pull.arm < len(self.configurations):
            return self._wanted(pull)
        point = self.policy.point_of(pull.arm)
        is_first = not point and pull.arm < self.policy.search.n_first
        origin, values = self._first.values_of(pull.arm, is_first)
        if self.draws:
            draw = self.configurations.next_draw
            return Wanted(pull, values, "search", point, draw=draw, origin=origin)
        if values and self._space is not None:
            point = self._first.point_in(self._space, origin, values, [self._seed, pull.arm])
        drawn = self._drawn(pull.arm, point)
        if drawn is None:
            return self._without_new_arms(pending)
        return Wanted(pull, drawn[0], "search", drawn[1], origin=origin)

    def _find_baseline(self) -> int | None:
        return None if self._baseline is None else self.configurations.owner(self._baseline)

    def _next_of_baseline(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return the baseline's evaluation at the target, as long as it has no value there."""
        search, arm, given = self.policy.search, self._find_baseline(), self._own_baseline
        if self.policy.shortlist or (arm is None and given is None):
            return None
        number = len(self.configurations) if arm is None else arm
        is_there = search.count(number, search.target) > 0 or not search.is_open(number)
        if is_there or any(pull.arm == number for pull in pending):
            return None
        block = self.open_block(number, pending)
        pull = self.limited(Pull(number, search.target, block=block), pending)
        if not self.policy.fits(pull, pending):
            return None
        if arm is None and given is not None:
            return Wanted(pull, given, "search")
        return self._wanted(pull)

    def _wanted(self, pull: Pull) -> Wanted:
        configuration, draw = self.configurations[pull.arm], self.configurations.draw_of(pull.arm)
        if isinstance(pull, Replicate):
            return Wanted(pull, configuration, "certificate", None, pull.shortlist, draw)
        return Wanted(pull, configuration, "search", self._planned.get(pull.arm), draw=draw)

    def _drawn(self, arm: int, point: Point | None) -> tuple[dict[str, Any], Point] | None:
        """Return a new configuration near a point, with its own point; None if there is none."""
        asked = len(self.configurations), arm, repr(point)
        if self._space is None or asked in self._exhausted:
            return None
        for attempt in range(_MOST_DRAWS + 1):
            key = [self._seed, arm, attempt] if attempt else [self._seed, arm]
            configuration, own = self._space.draw(point, key)
            if self.configurations.find(configuration) is None:
                return configuration, own
            point = None
        self._exhausted.add(asked)
        return None

    def _without_new_arms(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return the next step once all were begun: to the target or the certificate."""
        search, policy = self.policy.search, self.policy
        if any(pull.fidelity < search.target for pull in pending):
            return None
        at_target = {*search.finished_arms(), *(pull.arm for pull in pending)}
        waiting = [
            arm
            for arm in range(len(self.configurations))
            if search.level_of(arm) >= 0 and arm not in at_target | self._failed
        ]
        if waiting and len(at_target) < policy.top:
            of_waiting = [(search.level_of(arm), arm) for arm in waiting]
            best = max(of_waiting, key=lambda each: (each[0], search.mean(each[1], each[0])))[1]
            pull = Pull(best, search.target, block=SEARCH_BLOCK)
            if policy.fits(pull, pending):
                return self._wanted(pull)
        if pending:
            return None
        failed = next_failed(search)
        if failed is not None and policy.fits(failed):
            return self._wanted(replace(failed, block=SEARCH_BLOCK))
        contenders = policy.contenders()
        if len(contenders) < 2:
            return None
        known = policy.shortlist
        policy.agree(contenders)
        pulls = policy.ask(1)
        policy.agree(known)
        return self._wanted(pulls[0]) if pulls else None

    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        return self.policy.fits(pull, pending)

    def open_block(self, arm: int, pending: Sequence[Pull]) -> int | None:
        """Return the block of the search, if evaluations share replicates."""
        return SEARCH_BLOCK if self._in_blocks else None

    def limited(self, pull: Pull, pending: Sequence[Pull]) -> Pull:
        return replace(pull, limit=self.policy.budget.limit_for(pull, pending, None))

    def adopt(self, begun: Begun) -> Pull | None:
        if begun.purpose == "given" and begun.block not in (None, SEARCH_BLOCK):
            return None  # begun before it was known that this is a search
        known = len(self.configurations)
        pull = super().adopt(begun)
        if pull is None:
            return None
        self._first.adopt(pull.arm, begun)
        given = self._own_baseline
        if begun.is_baseline or (given and self.configurations.find(given) == pull.arm):
            self._baseline = pull.arm
            self.policy.baseline = self._find_baseline()
        if pull.arm == known and (self.draws or begun.point is not None):
            # One that may lie anywhere is under way, too.
            self.policy.search.describe(pull.arm, dict(begun.point or {}))
            if self.draws and begun.point is not None:
                self._planned[pull.arm] = begun.point
        if begun.purpose != "certificate":
            return pull
        # There is none while the claim of one of its arms was not read.
        arms = [self.configurations.arm_of_key(key) for key in begun.shortlist]
        shortlist = () if None in arms else tuple(arm for arm in arms if arm is not None)
        return Replicate(pull.arm, pull.fidelity, pull.limit, pull.block, shortlist=shortlist)

    def inform(
        self, parameters: Mapping[str, Numeric | OneOf], points: Mapping[int, Point]
    ) -> None:
        search = self.policy.search
        known = search.space.parameters
        if any(known.get(name) != kind for name, kind in parameters.items()):
            search.space = SearchSpace(known | dict(parameters))
        for draw, point in points.items():
            arm = self.configurations.find({}, draw)
            if arm is not None:
                search.describe(arm, dict(point))
                self._planned.pop(arm, None)

    def learn(self, pull: Pull, observation: Observation, purpose: str) -> None:
        self.policy.baseline = self._find_baseline()
        if is_worst(observation) and pull.fidelity == self.n_levels - 1:
            self.policy.rule_out(pull, observation)
            return
        if observation.has_value:
            self._failed.discard(pull.arm)
        else:
            self._failed.add(pull.arm)
        self.policy.tell(pull, observation)

    def cost_of(self, pull: Pull, observation: Observation) -> float:
        return self.policy.budget.price_of(pull) if observation.cost is None else observation.cost

    def charge(self, lost: float, held: float) -> None:
        super().charge(lost, held)
        self.policy.budget.lost = lost

    def answer(self) -> Answer:
        self.policy.provisos = self.conditions
        answer = self.policy.recommend()
        configuration = {} if answer.arm is None else self.configurations[answer.arm]
        more = {"cost": answer.cost + self.unlearned_cost, **self.policy.standing.findings()}
        more["earlier"] = self._first.n_of_earlier(self.configurations)
        level = self._levels[answer.fidelity]
        return Answer.of(answer, self.sign, configuration, level, searched=True, **more)


class _TriedFirst:
    """Says which values the first arms have: those of earlier results take turns with others."""

    def __init__(
        self,
        earlier: Sequence[Mapping[str, Any]],
        beliefs: Mapping[str, tuple[Any, float]],
        space: Space | None,
    ) -> None:
        self._earlier, self._beliefs = [*earlier], beliefs
        self._of_earlier: dict[int, Mapping[str, Any]] = {}  # by arm, what it was to have
        if space is None:
            return
        given, self._earlier = self._earlier, [*filter(space.place, self._earlier)]
        having = f"the space, with the parameters {shown(sorted(space.kinds))}"
        if given and not self._earlier:
            raise ValueError(
                f"earlier has no configuration with a value of {having}: the first one is "
                f"{shown(given[0])}. Give its parameters the names of the space."
            )
        for name, (centre, _) in self._beliefs.items():
            if not space.place({name: centre}):
                raise ValueError(
                    f"beliefs[{name!r}] must be a value of {having}, got {shown(centre)}."
                )

    def values_of(self, arm: int, is_first: bool) -> tuple[Origin, Mapping[str, Any]]:
        """Return why an arm is begun, and the values that one of the first has for that reason."""
        n_earlier = len(self._of_earlier)
        n_others = arm - n_earlier
        if is_first and n_earlier < len(self._earlier) and n_earlier <= n_others:
            return "earlier", self._earlier[n_earlier]
        values = believed(self._beliefs, n_others) if is_first else {}
        return ("belief" if values else "chosen"), values

    def point_in(
        self, space: Space, origin: Origin, values: Mapping[str, Any], key: Sequence[int]
    ) -> Point:
        """Return the point of values; numbers that are believed in are drawn around theirs."""
        point = dict(space.place(values))
        if origin == "belief":
            for number, name in enumerate(sorted(point)):
                if isinstance(space.kinds.get(name), Numeric):
                    point[name] = near(point[name], [*key, number])
        return point

    def adopt(self, arm: int, begun: Begun) -> None:
        """Learn from the claim of an arm."""
        if begun.origin == "earlier":
            self._of_earlier.setdefault(arm, begun.configuration)

    def n_of_earlier(self, known: Configurations) -> int:
        """Return how many arms have a value of the earlier configuration that they stand for."""
        return sum(
            any(known[arm].get(name) == value for name, value in values.items())
            for arm, values in self._of_earlier.items()
        )
