"""The base of all samplers: what they keep of each study, and the random numbers of it."""

import abc
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial

from mfhpo._validation import MOST_SEED, check_count, check_instance, check_limit
from mfhpo_optuna.arguments import Settings
from mfhpo_optuna.study.attributes import (
    ARGUMENTS,
    SAMPLER_KEY,
    WORKER,
    parameters_before,
    read_attribute,
    write_note,
)
from mfhpo_optuna.study.loop.end_of_optimize import call_at_end
from mfhpo_optuna.study.loop.report import ProgressLike, ProgressReport
from mfhpo_optuna.study.trials.processes import described, worker_name


class ReadStudy(Protocol):
    """What is known about a study by its trials: a race, a game."""

    listener: Any  # called after each observation, or None

    def read(self, study: optuna.Study) -> bool:
        """Take in what is new; False if it must be made anew."""

    def chosen_by(self, trial_number: int) -> list[tuple[int, Any, str | None]]:
        """Return the other trials that are waited for, with workers and digests of arguments."""


ReadT = TypeVar("ReadT", bound=ReadStudy)

# Seconds within which a worker that runs a study begins its next trial, and between two looks.
_BETWEEN_TRIALS, _PERIOD = 1.0, 0.2


class StudySampler(BaseSampler, Generic[ReadT]):
    """Keeps what it has read of each study; see `SamplerOptions` for the arguments."""

    def __init__(self, lease: float | None, progress: ProgressLike, seed: int | None) -> None:
        self._lease = check_limit("lease", lease)
        self._seed = None if seed is None else check_count("seed", seed, 0, MOST_SEED)
        self._progress = ProgressReport(progress)
        # Storages are kept along, so that no other one can take their identities.
        self._read_studies: dict[tuple[int, int], tuple[object, ReadT]] = {}
        self._lock = threading.RLock()
        self._arguments: dict[str, Any] = {}  # the constructor's, to note in studies
        # Of trials that must not be run: why, by study and number.
        self._refused: dict[tuple[int, int, int], str] = {}
        self._noted: dict[tuple[int, int], object] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that it was made with; of those with defaults, the given ones.

        A study keeps them in its user attribute ``mfhpo:sampler``, from its first trial on.
        """
        return dict(self._arguments)

    @abc.abstractmethod
    def _new(self, study: optuna.Study) -> ReadT:
        """Return what is known about a study before any trial is read; all workers agree."""

    @abc.abstractmethod
    def _read(self, study: optuna.Study) -> ReadT:
        """Return what is known about a study, with its news; the lock is held."""

    def _watch_for_end(self, study: optuna.Study) -> None:
        call_at_end(study, self, lambda error: self._ended(study, error))

    def _ended(self, study: optuna.Study, error: BaseException | None) -> None:
        with self._lock:
            self._progress.end()
            # Until the next one, others may run the study, with other arguments.
            self._noted.pop((study._study_id, id(study._storage)), None)
            # An error of the objective says more than what would have been left.
            if error is None or isinstance(error, KeyboardInterrupt):
                self._say_if_cut_short(self._of(study))

    @abc.abstractmethod
    def _say_if_cut_short(self, read: ReadT) -> None:
        """Say once what is left and what is known, if an `optimize` ended before the end."""

    def replay(self, study: optuna.Study, listen: Callable[[ReadT], Any]) -> ReadT:
        """Go through the study's observations once more, as plots do.

        Given the race or the game, `listen` returns what is called after each observation.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            replayed = self._new(study)
            replayed.listener = listen(replayed)
            replayed.read(study)
        return replayed

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return nothing: each parameter is given when it is asked for."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values of the parameters in the search space."""
        return {
            name: self.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.items()
        }

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value of a parameter: the configuration's, or what the sampler decides."""
        self._check_study(study)
        refusal = self._refusal(study, trial)
        if refusal:
            raise ValueError(refusal)
        with self._lock:
            return self._value_for(study, trial, param_name, param_distribution)

    @abc.abstractmethod
    def _value_for(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """Return the value of a parameter that a trial asks for; the lock is held."""

    @abc.abstractmethod
    def _check_study(self, study: optuna.Study) -> None:
        """Raise ValueError for a study that the sampler cannot run."""

    def reseed_rng(self) -> None:
        """Do nothing: randomness comes from the seed and the trials, never from a shared state."""

    @cached_property
    def _settings(self) -> Settings:
        return Settings(self, self._arguments)

    def _signature(self) -> dict[str, str]:
        """Return who has chosen a trial's pull or query, to be noted with it."""
        by = {ARGUMENTS: self._settings.digest} if self._arguments else {}
        return {WORKER: worker_name(), **by}

    def _join(self, study: optuna.Study, trial: FrozenTrial) -> ReadT | None:
        """Read a study, and say in it how it is run, for others and for whoever reads it later.

        None if this worker must not run it: then the trial's first suggestion raises ValueError.
        """
        key = (study._study_id, id(study._storage))
        refusal = ""
        try:
            if key not in self._noted and self._arguments:
                refusal = self._settings.objection_to(read_attribute(study, SAMPLER_KEY), ())
            if not refusal:
                known = self._read(study)
                refusal = self._objection_to_others(study, trial, known)
        except ValueError as error:  # its trials are not of these arguments
            refusal = str(error)
        if not refusal:
            return known
        self._refused[(*key, trial.number)] = refusal
        stop(study)
        if parameters_before(trial) is not None:
            warnings.warn(
                f"{refusal} Trial {trial.number} is evaluated all the same, as Optuna asks no "
                f"sampler for its parameters.",
                stacklevel=5,
            )
        return None

    def _objection_to_others(self, study: optuna.Study, trial: FrozenTrial, known: ReadT) -> str:
        """Return why this worker must not run a study beside others, or "", and note it then."""
        if not self._arguments:
            return ""
        mine, key = self._settings, (study._study_id, id(study._storage))
        others = self._others(known.chosen_by(trial.number))
        if key in self._noted and not others:
            return ""
        noted = read_attribute(study, SAMPLER_KEY)
        if mine.changes(noted) and dict(noted or {}).get(WORKER) != worker_name():
            # Those that were there may just be between two trials.
            until = time.monotonic() + _BETWEEN_TRIALS
            while not others and time.monotonic() < until:
                time.sleep(_PERIOD)
                others = self._others(self._read(study).chosen_by(trial.number))
        objection = mine.objection_to(noted, others)
        if objection:
            return f"study {study.study_name!r} {objection}"
        for name, note in self._notes().items():
            if read_attribute(study, name) != note:
                write_note(study, name, note)
        self._noted[key] = study._storage
        return ""

    def _others(self, under_way: Iterable[tuple[int, Any, str | None]]) -> list[str]:
        """Return in words the trials that other processes have begun with other arguments.

        Those of this process may have been asked for and given up before another sampler was made.
        """
        return [
            f"trial {number}, which {described(worker)} has begun"
            for number, worker, digest in under_way
            if digest not in (None, self._settings.digest) and worker != worker_name()
        ]

    def _refusal(self, study: optuna.Study, trial: FrozenTrial) -> str:
        return self._refused.get((study._study_id, id(study._storage), trial.number), "")

    def _notes(self) -> dict[str, Any]:
        """Return what a study is told about how it is run, by attribute.

        It is written before a trial only: what merely reads a study writes nothing to it.
        """
        if not self._arguments:
            return {}
        return {SAMPLER_KEY: {**self._settings.note, WORKER: worker_name()}}

    def _of(self, study: optuna.Study) -> ReadT:
        """Return what is known about a study, as last read; the lock is held, as in `_anew`."""
        check_instance("study", study, optuna.Study, "an optuna.Study")
        key = (study._study_id, id(study._storage))
        if key not in self._read_studies:
            self._read_studies[key] = (study._storage, self._new(study))
        return self._read_studies[key][1]

    def _anew(self, study: optuna.Study) -> ReadT:
        self._read_studies.pop((study._study_id, id(study._storage)), None)
        return self._of(study)

    def _seed_of(self, study: optuna.Study) -> int:
        # Without a seed, the study's name gives one that all its workers agree on.
        return zlib.crc32(study.study_name.encode()) if self._seed is None else self._seed

    def __getstate__(self) -> dict[str, Any]:
        # Both are functions of the studies.
        state = self.__dict__ | {"_read_studies": {}, "_noted": {}, "_refused": {}}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


def stop(study: optuna.Study) -> bool:
    """Stop the study's loop; False under ask and tell, where there is none."""
    try:
        study.stop()
    except RuntimeError:
        return False
    return True
