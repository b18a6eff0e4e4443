"""Workers of one experiment, each with a reading of its own, and what may happen to them."""

import json
import random
from dataclasses import replace

import numpy as np

from mfhpo import Fidelity
from mfhpo.experiment import (
    Assignment,
    Begun,
    DistributionSpace,
    Ended,
    Experiment,
    Found,
    GameSettings,
    LateSettings,
    LimitSettings,
    Lost,
    RaceSettings,
    SearchSettings,
    event_of,
)
from mfhpo.games import Hyperparameters
from mfhpo.knowledge.space import Numeric, OneOf
from mfhpo.search import DeclaredSearch

CANDIDATES = [
    {"x": x, "kind": kind} for x, kind in ((0.1, "a"), (0.4, "a"), (0.8, "b"), (0.9, "b"))
]
LEVELS = (1, 3, 9)
DRAWN = (0.1, 0.4, 0.8, 0.9, 0.3, 0.6)
EPOCHS = Fidelity("epochs", levels=LEVELS)


def race(**options):
    """Independent evaluations at several levels, with declared costs."""
    given = {"bias": (0.1, 0.03, 0.0), "sigma": 0.1, "epsilon": 0.05, "budget": 300.0}
    return RaceSettings.of(
        CANDIDATES, **{"fidelity": EPOCHS, "lease_seconds": 60.0} | given | options
    )


def measured_race():
    """Costs are what evaluations report."""
    return race(fidelity=Fidelity("epochs", levels=LEVELS, costs="measured"), budget=200.0)


def race_in_blocks():
    """All candidates on the same replicates."""
    return RaceSettings.of(CANDIDATES, shares_replicates=True, epsilon=0.02, budget=60.0)


def blind_race():
    """The levels are found late."""
    return race(fidelity=Fidelity("epochs"))


def search(**options):
    """Configurations are drawn from a small space."""
    given = {"budget": 90.0, "replicate": "seed", "certify_share": 0.5}
    declared = DeclaredSearch.of(EPOCHS, **given | options)
    space = DistributionSpace({"x": [round(0.05 * k, 2) for k in range(20)], "kind": ["a"]})
    return SearchSettings(declared=declared, levels=LEVELS, space=space, seed=3)


def search_without_blocks():
    """The certificate's evaluations are independent, and learned in order."""
    return search(replicate=None)


def finalists():
    """Cheap levels choose among given candidates, which blocks compare."""
    return race(bias=None, sigma=None, budget=100.0, shares_replicates=True)


def race_of_draws(**options):
    """The host draws each parameter when it is asked for; some draws are equal."""
    declared = {"bias": (0.1, 0.03, 0.0), "sigma": 0.1, "epsilon": 0.05, "budget": 300.0}
    return RaceSettings.of(6, **{"fidelity": EPOCHS} | declared | options)


def search_of_draws(levels=LEVELS):
    """What there is to search becomes known by evaluations."""
    declared = DeclaredSearch.of(EPOCHS, budget=90.0, certify_share=0.5)
    return SearchSettings(declared=declared, levels=levels, seed=3)


def blind_search_of_draws():
    """The levels are found late."""
    return LateSettings(fidelity="epochs", make=search_of_draws, candidates=None, first_limit=2.0)


def blind_draws():
    """A race of draws or a search for finalists: the levels tell."""
    known = {"bias": None, "sigma": None, "shares_replicates": True}
    return race_of_draws(fidelity=Fidelity("epochs"), **known)


def limits_of_draws():
    """Which draw to run, for how long."""
    return LimitSettings(candidates=4, limits=(1.0, 2.0, 4.0))


def limits():
    """Which candidate to run, for how long."""
    return LimitSettings(candidates=CANDIDATES, limits=(1.0, 2.0, 4.0), sign=1.0)


def game():
    """Two players, one of whom chooses from three."""
    players = {"a": {"x": Numeric()}, "b": {"y": OneOf(3)}}
    model = Hyperparameters.shared(5.0, 5.0, correlations=[0.8], noise=0.01, n_features=4)
    options = {"hyperparameters": [model] * 2}
    return GameSettings(players=players, costs=(1.0, 4.0), budget=40.0, options=options)


KINDS = {
    kind.__name__: kind
    for kind in (
        race,
        measured_race,
        race_in_blocks,
        blind_race,
        search,
        search_without_blocks,
        race_of_draws,
        search_of_draws,
        blind_search_of_draws,
        blind_draws,
        limits_of_draws,
        finalists,
        limits,
        game,
    )
}


def content_of(begun, level):
    """Return what an evaluation gives, and what it costs."""
    if begun.draw is not None:
        x = begun.configuration.get("x", DRAWN[begun.draw % len(DRAWN)])
        begun = replace(begun, configuration={"x": x, "kind": "a"})
        told = {"parameters": {"x": Numeric()}, "points": {begun.draw: {"x": x}}}
        told["configuration"] = begun.configuration
        return {"value": value_of(begun, level), "cost": float(LEVELS[level])} | told
    if "y" not in begun.configuration:
        return {"value": value_of(begun, level), "cost": float(LEVELS[level])}
    x, y = begun.configuration["x"], begun.configuration["y"]
    return {"value": None, "values": (-((x - 0.3 * y) ** 2), -((y - 2 * x) ** 2)), "cost": 5.0}


def value_of(begun, level):
    """Return a value that only depends on what is evaluated, and the seconds that it takes."""
    replicate = begun.replicate if begun.block is None else begun.block
    rng = np.random.default_rng([replicate, level, int(100 * begun.configuration["x"])])
    return float(begun.configuration["x"] - 0.1 / LEVELS[level] + rng.normal(0.0, 0.1))


def stored(event):
    """Return an event as it comes back from where it was written."""
    return event_of(json.loads(json.dumps(event.to_dict())))


def assigned(begun):
    """Return what tells a claim from others."""
    return begun.configuration, begun.levels, begun.block, begun.replicate


def next_of(experiment):
    """Return what is next, or why it is an error to ask."""
    try:
        return repr(experiment.next())
    except ValueError as error:
        return str(error)


def shown(experiment):
    """Return all that users and hosts see of an experiment."""
    return (
        repr(experiment.answer()),
        repr(experiment.history()),
        next_of(experiment),
        experiment.order,
        experiment.n_begun,
    )


class Worker:
    """Has read some of the events, perhaps not all that were written."""

    def __init__(self, settings):
        self.settings = settings
        self.experiment = Experiment(settings)
        self.unread = []

    def read(self, n=None, rng=None):
        """Read what others wrote: all of it, or some, in any order."""
        if rng is not None:
            rng.shuffle(self.unread)
        ready, self.unread = self.unread[:n], [] if n is None else self.unread[n:]
        for event in ready:
            self.experiment.apply(event)

    def restart(self, rng):
        """Forget all but the events that were read, and replay these in any order."""
        events = self.experiment.events
        rng.shuffle(events)
        self.experiment = Experiment.replay(self.settings, events)


class Team:
    """Workers that write events which the others read late, twice, or in another order."""

    def __init__(self, settings, n=3, seed=0):
        self.settings = settings
        self.rng = random.Random(seed)
        self.workers = [Worker(settings) for _ in range(n)]
        self.written = []
        self.open = {}  # claims as they stand, by id
        self.ended = {}

    def write(self, worker, event):
        """Write an event, which its writer has read at once."""
        event = stored(event)
        self.written.append(event)
        worker.experiment.apply(event)
        for other in self.workers:
            if other is not worker:
                other.unread.append(event)
        if isinstance(event, Begun):
            self.open[event.id] = event

    def new_id(self):
        """Return an id that no evaluation has."""
        return str(len(self.written))

    def begin(self, which, id=None):
        """Let a worker choose by what it has read, and move if another has chosen the same."""
        worker = self.workers[which]
        work = worker.experiment.next(moving=id)
        if not isinstance(work, Assignment):
            if id is not None:
                self.lose(worker, id)
            return work
        id = self.new_id() if id is None else id
        begun = work.begun(id, worker.experiment.order)
        self.write(worker, begun)
        return begun

    def settle(self, which, id):
        """Read what others wrote, and move until a claim stands; return it, or None."""
        worker = self.workers[which]
        worker.read()
        while id in self.open and worker.experiment.settle(id) is None:
            before = self.open[id]
            self.begin(which, id)
            if id in self.open and assigned(self.open[id]) == assigned(before):
                break  # nothing else is wanted
        return self.open.get(id)

    def level_of(self, worker, id):
        """Let an evaluation ask for its level, by which all levels are known."""
        worker.read()
        if worker.experiment.runner.n_levels < len(LEVELS):
            order = worker.experiment.order
            self.write(worker, Found(id="levels", order=order, levels=LEVELS))
        return worker.experiment.level_of(id)

    def end(self, worker, id, level=None, **content):
        """Write what an evaluation gave."""
        begun = self.open[id]
        at = min((begun.levels or (0,))[0] if level is None else level, len(LEVELS) - 1)
        content = content_of(begun, at) | content
        ended = Ended(id=id, order=worker.experiment.order, level=level, **content)
        self.write(worker, ended)
        if ended.last:
            self.ended[id] = self.open.pop(id)

    def lose(self, worker, id, is_sure=True):
        """Write that an evaluation will never end."""
        order = worker.experiment.order
        self.write(worker, Lost(id=id, order=order, why="died", cost=1.0, is_sure=is_sure))
        self.ended[id] = self.open.pop(id)

    def check(self):
        """All readers of the same events see the same, whatever they have seen before."""
        for worker in self.workers:
            worker.read()
        expected = shown(self.workers[0].experiment)
        for worker in self.workers[1:]:
            assert shown(worker.experiment) == expected
        events = list(self.written)
        self.rng.shuffle(events)
        cut = self.rng.randrange(len(events) + 1)
        resumed = Experiment.replay(self.settings, events[:cut])
        shown(resumed)
        for event in events[cut:]:
            resumed.apply(event)
        assert shown(resumed) == expected
        assert shown(Experiment.replay(self.settings, resumed.events)) == expected
