"""Plays of a search on a function that is known."""

import numpy as np

from mfhpo.problem import Observation
from mfhpo.search import Numeric, SearchSpace


def drawn(space, arm, seed=0):
    rng = np.random.default_rng([seed, arm])
    return {
        name: float(rng.random() if isinstance(parameter, Numeric) else rng.integers(parameter.n))
        for name, parameter in space.parameters.items()
    }


def next_pull(race, points, at_random):
    """What a race asks for, described to its search if it is new; None at its end."""
    pulls = race.ask()
    if not pulls:
        return None
    (pull,) = pulls
    describe(race, pull, points, at_random)
    return pull


def describe(race, pull, points, at_random):
    if pull.arm not in points:
        point = race.point_of(pull.arm)
        points[pull.arm] = at_random(pull.arm) if point is None else dict(point)
        race.search.describe(pull.arm, points[pull.arm])


def replayed(new, points, told):
    """A new race after what another one was told: its arms' points by arm, pulls with ends."""
    for arm, point in points.items():
        new.search.describe(arm, point)
    for pull, observation in told:
        new.tell(pull, observation)
    return new


class RacePlay:
    """Plays a race: a class below says what becomes of a pull (`outcome`)."""

    def __init__(self, race, draw, points=()):
        self.race, self.search, self.draw = race, race.search, draw
        self.points, self.told = dict(points), []

    @property
    def pulls(self):
        return [pull for pull, _ in self.told]

    def step(self):
        pull = next_pull(self.race, self.points, self.draw)
        if pull is not None:
            self.tell(pull)
        return pull is not None

    def tell(self, pull):
        self.told.append((pull, self.outcome(pull)))
        self.race.tell(*self.told[-1])

    def steps(self, n):
        for _ in range(n):
            self.step()
        return self

    def to_end(self, workers=1):
        """Play to the end; evaluations end in the order in which they began."""
        under_way = []
        while True:
            while len(under_way) < workers and (asked := self.race.ask(1, under_way)):
                describe(self.race, asked[0], self.points, self.draw)
                under_way += asked
            if not under_way:
                return self
            self.tell(under_way.pop(0))
            assert len(self.told) < 2000


class Play:
    def __init__(self, search, objective, seed=0):
        self.search = search
        self.objective = objective
        self.seed = seed
        self.points = []
        self.asked = []
        self.pulls = []
        self.cost = 0.0

    def begin(self, pull):
        """Note what was asked for; a new arm is where the search wants it, or anywhere."""
        wanted = self.search.point
        self.asked.append((pull, wanted))
        if pull.arm == len(self.points):
            point = drawn(self.search.space, pull.arm, self.seed) if wanted is None else wanted
            self.points.append(self.applying(dict(point)))
            self.search.describe(pull.arm, self.points[-1])
        return pull

    def applying(self, point):
        return point

    def step(self):
        pull = self.begin(self.search.ask(len(self.points)))
        self.pulls.append(pull)
        self.cost += self.search.cost_from(self.search.level_of(pull.arm), pull.fidelity)
        value = self.objective(self.points[pull.arm], pull.fidelity)
        self.search.tell(pull, Observation(value))

    def steps(self, n):
        for _ in range(n):
            self.step()
        return self

    @property
    def best(self):
        leader = self.search.leader()
        return self.points[leader]

    def until(self, cost):
        while self.cost < cost:
            self.step()
        return self


def valley(point, level):
    """Largest, 0, at (.3, .6); lower levels move the place a little."""
    moved = 0.03 * (2 - level)
    return -((point["x"] - 0.3 - moved) ** 2) - (point["y"] - 0.6) ** 2


def plane():
    return SearchSpace({"x": Numeric(), "y": Numeric()})


class PlayTogether(Play):
    """Several workers; an evaluation takes its cost in time."""

    def __init__(self, search, objective, workers, seed=0):
        super().__init__(search, objective, seed)
        self.workers = workers
        self.now = 0.0
        self.ends = []  # when what is under way ends, and what it is

    @property
    def pending(self):
        return [pull for _, pull in self.ends]

    def step(self):
        while len(self.ends) < self.workers:
            pull = self.begin(self.search.ask(len(self.points), self.pending))
            took = self.search.cost_from(self.search.level_of(pull.arm), pull.fidelity)
            self.pulls.append(pull)
            self.ends.append((self.now + took, pull))
        end = min(self.ends, key=lambda one: one[0])
        self.ends.remove(end)
        self.now, pull = end
        self.cost = self.workers * self.now
        value = self.objective(self.points[pull.arm], pull.fidelity)
        self.search.tell(pull, Observation(value))
