"""What runs are sent to, and what came of it: told to an experiment as events, which are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mfhpo.experiment import Assignment, Begun, Ended, Event, Experiment, Found, Lost
from mfhpo.experiment.settings import Settings
from mfhpo_ray.experiment.event_log import DRIVER, EventLog
from mfhpo_ray.experiment.notebook import Notebook
from mfhpo_ray.schedulers.runs import Run, Runs
from mfhpo_ray.schedulers.told import AGAIN

_RESUMPTION = "resumption"


class Claims:
    """Tells an experiment where runs are sent, and what they show there.

    Parameters
    ----------
    runs
        What there is.
    notebook
        Where events are stored.
    cost_of
        Returns what a run has cost since that was asked for last.
    """

    def __init__(self, runs: Runs, notebook: Notebook, cost_of: Callable[[Run], float]) -> None:
        self._runs = runs
        self._notebook = notebook
        self._cost_of = cost_of
        self._log: EventLog  # from `begin` on
        self._found: list[dict[str, Any]] = []
        self._knows_resumption = False

    @property
    def experiment(self) -> Experiment:
        """The experiment, to be read."""
        return self._log.experiment

    def begin(self, settings: Settings, n_arms: int) -> None:
        """Begin the experiment, or go on with what was told before a restart."""
        self._log = EventLog(settings, {"n_arms": n_arms}, self._notebook)
        self._log.take_over(self._notebook.records)
        for event in self.experiment.events:
            self._note(event)

    def settle(self, out: set[int]) -> None:
        """Give up the claims of runs that Ray will not go on with; others are sent again."""
        for id in self.experiment.open:
            run = self._run_of(id)
            if run is not None and not run.trial.is_finished():
                run.is_sent = False
            else:
                is_withdrawn = self.experiment.ledger.open[id].pull.arm in out
                order = self.experiment.order
                why = "the driver has died"
                self._tell(Lost(id=id, order=order, why=why, is_withdrawn=is_withdrawn))

    def send(
        self, run: Run, levels: Sequence[int], work: Assignment | None = None, **how: Any
    ) -> None:
        """Send a run to the first of these levels, as assigned or else as it was suggested."""
        order = self.experiment.order
        id = f"{run.trial.trial_id}:{order}"
        if work is not None:
            self._tell(work.begun(id, order, levels=levels))
            return
        how |= {"purpose": self.experiment.runner.purpose, "origin": "enqueued"}
        configuration = self._runs.configurations[run.arm]
        self._tell(
            Begun(id=id, order=order, configuration=configuration, levels=tuple(levels), **how)
        )

    def send_again(self) -> Run | None:
        """Send a run again that failed on its way, or was on it when the driver died."""
        lost = [run for run in self._runs if run.begun is not None and run.waits]
        first = min(lost, key=lambda run: self._log.experiment.claim(run.claim).order, default=None)
        if first is not None and first.begun is not None:
            order, of = self.experiment.order, first.claim
            id = f"{first.trial.trial_id}:{order}"
            self._tell(replace(first.begun, id=id, order=order, retry_of=of, origin="retry"))
        return first

    def end(self, run: Run, value: float | None, **how: Any) -> None:
        """Tell what a run has shown; None: it failed.

        If nothing else is told, that is at the level where it was sent to, and for what it has cost
        so far (see `mfhpo.experiment.Ended`).
        """
        how = {"level": run.level, **how}
        if "cost" not in how:
            how["cost"] = self._cost_of(run)
        self._tell(Ended(id=run.claim, order=self.experiment.order, value=value, **how))

    def lose(self, run: Run, why: str = AGAIN, **how: bool) -> None:
        """Tell that a run does not come to where it was sent, without its arm's fault."""
        if run.begun is not None:
            order, cost = self.experiment.order, self._cost_of(run)
            self._tell(Lost(id=run.claim, order=order, why=why, cost=cost, **how))

    def find(self, **found: Any) -> None:
        """Tell what was found out; it is not stored, as it may be different after a restart."""
        if found not in self._found:
            self._found.append(found)
            self.experiment.apply(Found(id=DRIVER, order=self.experiment.order, **found))

    def note_resumption(self, resumes: bool, budget: float | None) -> None:
        """Tell whether trials go on from where they pause, once: the plan depends on it."""
        if not self._knows_resumption:
            order = self.experiment.order
            self._tell(Found(id=_RESUMPTION, order=order, resumes=resumes, budget=budget))

    def _tell(self, event: Event) -> None:
        self._log.tell(event)
        self._note(event)

    def _note(self, event: Event) -> None:
        run = self._run_of(event.id)
        if run is not None:
            run.note(event)
        self._knows_resumption |= event.id == _RESUMPTION

    def _run_of(self, id: str) -> Run | None:
        return self._runs.find(id.partition(":")[0])
