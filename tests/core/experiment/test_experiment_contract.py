"""The engine as its own host: driven in rounds, and by workers of whom some die."""

import heapq
import math

from mfhpo.experiment import Assignment, Ended, Experiment, Lost
from tests.contract.experiment_contract import DIED, Host, conformance, restarted


class Rounds(Host):
    """One driver that makes several evaluations at once, and tells all before it goes on."""

    in_rounds = True
    cannot = dict.fromkeys(("deaths", "hangs", "limits", "mistakes", "restarts"), "no such events")

    def run(self, task, world):
        experiment = Experiment(task.settings(self))
        while True:
            wanted = {}
            while len(wanted) < task.workers and isinstance(work := experiment.next(), Assignment):
                id = str(experiment.n_begun)
                experiment.apply(work.begun(id, experiment.order))
                wanted[id] = work
            if not wanted:
                return experiment.answer()
            for id, work in wanted.items():
                world.begin(id, work.configuration, task.levels[work.level], work.replicate)
            for id in wanted:
                outcome, order = world.outcomes[id], experiment.order
                world.end(id)
                cost = outcome.seconds if task.is_measured else None
                experiment.apply(Ended(id=id, order=order, value=outcome.value, cost=cost))


class Workers(Host):
    """Workers of one driver, in virtual time."""

    def run(self, task, world):
        self.experiment, self.running = Experiment(task.settings(self)), []
        now = 0.0
        while True:
            while len(self.running) < task.workers and self.begin(task, world, now):
                pass
            if not self.running or math.isinf(self.running[0][0]):
                return self.experiment.answer()
            now, _, id = heapq.heappop(self.running)
            self.end(task, world, id)
            if world.driver_dies:
                self.restart(world)

    def begin(self, task, world, now):
        work = self.experiment.next()
        if not isinstance(work, Assignment):
            return False
        id = f"trial {len(world.begun)}"
        self.experiment.apply(work.begun(id, self.experiment.order))
        level = task.levels[work.level]
        outcome = world.begin(id, work.configuration, level, work.replicate)
        seconds = world.stopped_at(id) or outcome.seconds
        heapq.heappush(self.running, (now + seconds, len(world.begun), id))
        return True

    def end(self, task, world, id):
        outcome, stopped_at = world.outcomes[id], world.stopped_at(id)
        event, content = Lost, {"why": DIED, "cost": None}
        if outcome.dies:
            world.lose(id, None)
        else:
            world.end(id)
            value = outcome.value if stopped_at is None else None
            cost = (stopped_at or outcome.seconds) if task.is_measured else None
            event, content = Ended, {"value": value, "cost": cost, "stopped_at": stopped_at}
            content["configuration"] = outcome.instead
        self.experiment.apply(event(id=id, order=self.experiment.order, **content))

    def restart(self, world):
        """What was under way is lost with the driver."""
        self.experiment = restarted(self.experiment)
        for _, _, id in self.running:
            world.lose(id)
            self.experiment.apply(Lost(id=id, order=self.experiment.order, why=DIED))
        self.running = []


TestRounds = conformance(Rounds())
TestWorkers = conformance(Workers())
