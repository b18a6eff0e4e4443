"""An experiment that is told in short: configurations are numbers."""

from mfhpo import Fidelity
from mfhpo.experiment import Assignment, Begun, Ended, Experiment, Lost, RaceSettings

LEVELS = (1, 3, 9)


def race(n=2, levels=None, **options):
    """A race among configurations {"x": 0}, {"x": 1}, ..."""
    fidelity = None if levels is None else Fidelity("epochs", levels=levels)
    given = {"sigma": 1.0, "epsilon": 0.1}
    if levels is not None:
        given["bias"] = [0.0] * len(levels)
    given |= {"fidelity": fidelity} | options
    return RaceSettings.of([{"x": x} for x in range(n)], **given)


class Story:
    """An experiment, and what its only writer tells it."""

    def __init__(self, settings, events=()):
        self.settings = settings
        self.experiment = Experiment.replay(settings, events)

    def _tell(self, kind, id, order=None, **content):
        order = self.experiment.order if order is None else order
        event = kind(id=id, order=order, **content)
        self.experiment.apply(event)
        return event

    def begin(self, id, x=0, levels=(0,), **content):
        return self._tell(Begun, id, **{"configuration": {"x": x}, "levels": levels} | content)

    def end(self, id, value=0.0, **content):
        return self._tell(Ended, id, value=value, **content)

    def evaluate(self, id, x=0, levels=(0,), block=None, **ended):
        self.begin(id, x, levels, block=block)
        self.end(id, **ended)

    def lose(self, id, why="its process died", **content):
        return self._tell(Lost, id, why=why, **content)

    def follow(self, id, **content):
        """Begin what is next."""
        work = self.experiment.next()
        assert isinstance(work, Assignment), work
        begun = work.begun(id, self.experiment.order, **content)
        self.experiment.apply(begun)
        return begun

    @property
    def learned(self):
        """Ids in the order in which they were learned."""
        return [result.id for result in self.experiment.history()]

    @property
    def values(self):
        return {result.id: result.observation.value for result in self.experiment.history()}

    @property
    def answer(self):
        return self.experiment.answer()

    @property
    def conditions(self):
        return " ".join(self.answer.conditions)
