"""The notes that a search or a scheduler stores at once, so that a restart finds them."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from ray.tune.experiment import Trial

from mfhpo.experiment import Answer
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.recommendation import RECOMMENDATION, to_record

_logger = logging.getLogger("mfhpo_ray")


class Notebook:
    """The experiment's journal; a record that the storage would not take is written again later."""

    def __init__(self) -> None:
        self.journal: Journal | None = None  # while the experiment is stored nowhere
        self.records: dict[str, dict[str, Any]] = {}  # what was written before a restart
        self._is_open = False
        self._unwritten: dict[str, Mapping[str, Any]] = {}

    @property
    def is_kept(self) -> bool:
        """True if the experiment is stored anywhere."""
        return self.journal is not None

    def connect(self, journal: Journal) -> None:
        """Write to a journal from now on, and read what is there."""
        self.journal, self.records = journal, self.read(journal)
        self._unwritten.clear()  # another experiment's

    @staticmethod
    def read(journal: Journal) -> dict[str, dict[str, Any]]:
        """Return the records of a journal, but for the answer."""
        records = journal.read()
        records.pop(RECOMMENDATION, None)
        return records

    def open(self, trial: Trial, owner: str) -> None:
        """Connect to the journal of a trial's experiment; it must be the same for all trials."""
        journal = Journal.of(trial)
        if not self._is_open:
            self._is_open = True
            if journal is not None:
                self.connect(journal)
        elif journal and self.journal and journal.folder != self.journal.folder:
            raise ValueError(f"this {owner} has run another experiment; make a new one.")

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Write a record, and those that the storage would not take before."""
        if self.journal is None:
            return
        self._unwritten[name] = record
        failure = None
        for waiting in list(self._unwritten):
            try:
                self.journal.write(waiting, self._unwritten[waiting])
                del self._unwritten[waiting]
            except Exception as error:  # file systems raise errors of their own
                failure = error
        if failure is not None:
            words = "%d records could not be written to the experiment's storage, and wait: %s"
            _logger.warning(words, len(self._unwritten), failure)

    def write_answer(
        self, answer: Answer, metric: str | None, mode: str | None, names: Collection[str]
    ) -> None:
        """Write the answer so far where `mfhpo_ray.recommendation` finds it (see `to_record`)."""
        self.write(RECOMMENDATION, to_record(answer, str(metric), str(mode), names))
