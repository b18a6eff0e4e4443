"""The base of the searches: Tune's conventions around an experiment."""

import json
import logging
import secrets
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

from mfhpo import Observation
from mfhpo._validation import MOST_SEED, check_count, check_dictionaries, shown
from mfhpo.experiment import Answer, Assignment, Done, Found, Wait
from mfhpo_ray.experiment.configurations import (
    decode,
    described,
    encode,
    fingerprint,
    placeholders_in,
)
from mfhpo_ray.experiment.journal import SHARED, EventLog, Journal, Records
from mfhpo_ray.experiment.processes import cut_by
from mfhpo_ray.experiment.results import as_number, check_aim, in_terms_of_tune, scalars
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.candidates import ArmsLike, Candidates, Shown, check_arms
from mfhpo_ray.searchers.trials import Evaluations, Trials

_STATE_VERSION = 3  # of saved states; those of mfhpo 0.1.4 have none

_logger = logging.getLogger("mfhpo_ray")

_DROP_IT = "Drop it: trials end by themselves, and search.scheduler(limit=...) ends what hangs."


class ExperimentSearch(Searcher):
    """Runs an experiment: each trial is one evaluation, and the run ends by itself.

    Parameters
    ----------
    fidelity
        The key of the configuration that the search is to set: its name, or a `mfhpo.Fidelity`
        that also declares levels, costs or bias. Else levels come from the search space: geometric
        ones of a range, or the categories of a choice. Measured costs are ``time_total_s``. Here
        and in the search space ``"train/epochs"`` is the key ``epochs`` of ``train``.
    arms
        The configurations to compare: how many to draw from the search space; or a list of
        configurations. A finite space with fewer configurations is raced whole.
    """

    _draws = False  # its configurations itself, where none are given
    _arms_name = "arms"  # the argument that has them
    _policy_class: Callable[..., Any]
    _options_type: type
    _defaults: dict[str, Any]

    def __init__(self, trials: Trials, arms: ArmsLike | None) -> None:
        host = trials.host
        check_aim(host["metric"], host["mode"])
        super().__init__(metric=host["metric"], mode=host["mode"])
        self._trials = trials
        if arms is not None or not self._draws:
            arms = check_arms(arms, trials.keys, self._arms_name)
        self._candidates = Candidates(arms, host["space"], trials.keys, self._arms_name)
        # Without a seed, one is drawn here, and saved with the experiment.
        seed = secrets.randbits(31) if host["seed"] is None else host["seed"]
        self._seed = check_count("seed", seed, 0, MOST_SEED)
        self._most: int | None = None  # concurrent trials
        self._stop: Mapping[str, Any] = {}
        self._clock = time.monotonic
        self._journal: Journal | None = None
        self.evaluations = Evaluations(trials, self._now)
        self._shown = Shown()
        self._told: set[str] = set()  # what its user was told about
        self._object_to_budget()

    # What users call.

    def scheduler(
        self, limit: float | None = None, memory_limit: float | None = None
    ) -> PullScheduler:
        """Return the `PullScheduler` to run the search with: ``scheduler=search.scheduler()``.

        A search that sets limits itself takes no `limit`.
        """
        return self._trials.scheduler(limit, memory_limit)

    def recommendation(self) -> Answer:
        """Return the best answer so far; ValueError before the experiment has begun."""
        if self.evaluations.log is None:
            raise ValueError(
                "there is nothing to recommend yet: no trial was suggested. Of a restored "
                "experiment, ask recommendation(results)."
            )
        return in_terms_of_tune(self._log.experiment.answer(), self._shown.of)

    # What Tune calls.

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take metric, mode and space; False if the search does not draw all that is open."""
        check_aim(metric, mode)
        check_dictionaries("config", [config], "a search space of Tune")
        self._take("metric", metric)
        self._take("mode", mode)
        # Without levels, a criterion of RunConfig(stop=...) may be the end of all trials.
        stop = spec.get("stop") if self._trials.has_levels else None
        self._stop = stop if isinstance(stop, Mapping) else {}
        if stop:
            self.warn_of_stop(f"RunConfig(stop={stop!r})")
        if spec.get("num_samples") == 1:
            words = "num_samples=1 makes a single trial: give -1, the race ends by itself."
            self._warn_once("num_samples", words)
        if self.evaluations.log is not None:
            # It goes on with the configurations that it has. Tune restores a run only after this.
            self.evaluations.leave_run()
            return True
        taken = self._candidates.take(config)
        self._trials.look_up(self._candidates.space)
        self._object_to_budget()
        return taken

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Keep to a number of concurrent trials; Tune then leaves that to the search."""
        # Tune's own count would, after a restart, wait for trials that will never come.
        self._most = check_count("max_concurrent", max_concurrent, 1)
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the next configuration; ``FINISHED``, or None if there is none now."""
        evaluations = self.evaluations
        experiment = (evaluations.log or self._begin()).experiment
        if evaluations.finished:
            return self._finish()
        evaluations.lose_awaited()
        is_alone = experiment.n_begun and not evaluations.is_watched
        if is_alone and (consequence := self._trials.hangs):
            give = "give the Tuner TuneConfig(scheduler=search.scheduler())"
            self._warn_once("companion", f"nobody enforces the limits: {consequence}; {give}.")
        if self._most is not None and evaluations.n_running >= self._most:
            return None
        wanted = experiment.next()
        if isinstance(wanted, Done):
            return self._finish()
        if isinstance(wanted, Wait):
            about = wanted.why.partition(" of ")[0]
            if wanted.is_held_up and about not in self._told:
                self._told.add(about)
                _logger.warning(
                    "The race waits for %s, as values count in the order in which trials began. "
                    "If it hangs, stop it; search.scheduler(limit=...) does so by itself.",
                    wanted.why,
                )
            return None
        assert isinstance(wanted, Assignment)  # nothing is enqueued
        config = self._trials.configured(wanted, experiment.runner.configurations, self._seed)
        evaluations.begin(trial_id, wanted, config)
        return config

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Note how long a trial has run; only its last result is an observation."""
        if (running := self.evaluations.running(trial_id)) is not None:
            running.note(result)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell the experiment what came back from a trial; an unknown one is ignored."""
        evaluations = self.evaluations
        running = evaluations.running(trial_id)
        if running is None:
            return
        who = None if error else cut_by(result, running.iteration, self._stop)
        result = result or {}
        if who is None:
            ran = self._learn_what_ran(evaluations.begun(trial_id).configuration, result)
            notes = {"result": scalars(result), **({"ran": encode(ran)} if ran else {})}
            value = None if error else self._value(trial_id, result)
            evaluations.end(trial_id, value, result, notes)
        else:
            if result or running.iteration is not None:  # it has run
                words = f"{who} has stopped trial {trial_id} before its end: it is paid, and does"
                self._warn_once("stop", f"{words} not count. {_DROP_IT}")
            evaluations.cut(trial_id, who, result)
        self._write_answer(urgent=evaluations.finished)

    # What its scheduler calls: see `PullScheduler`.

    def connect(self, journal: Journal) -> None:
        """Write each event to the experiment's journal, and learn from what is there."""
        self.evaluations.is_watched = True
        if self.evaluations.log is None:
            records = journal.read()
            if not records:
                self._journal = journal
                return
            self._begin(records)
        if n := self._log.connect(journal):
            _logger.info("%d events are taken over from the journal.", n)
            self._shown.relearn(self._log)
        if self._log.experiment.history():
            self._write_answer()
        self.evaluations.await_open()

    def warn_of_stop(self, what: str) -> None:
        """Warn about the ``stop`` of the ``RunConfig``, named by `what`."""
        words = "may end trials early, which are paid and do not count."
        self._warn_once("stop", f"{what} {words} {_DROP_IT}")

    @property
    def finished(self) -> bool:
        """True if the experiment is over."""
        return self.evaluations.finished

    # What is saved.

    def get_state(self) -> dict[str, Any]:
        """Return what makes the same search again, as plain JSON; a journal has the events."""
        return {
            "version": _STATE_VERSION,
            "metric": self._metric,
            "mode": self._mode,
            "seed": self._seed,
            "most": self._most,
            "space": encode(self._candidates.tuner_space),
            "events": self.evaluations.log and self.evaluations.log.saved(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave, in a search made with the same arguments."""
        if state.get("version") != _STATE_VERSION:
            raise ValueError(
                "the saved state of the search is of another version of mfhpo, such as 0.1.4, "
                "which alone reads it; begin the experiment anew, with another RunConfig(name=...)."
            )
        self._take("metric", state["metric"])
        self._take("mode", state["mode"])
        self._seed = int(state["seed"])
        if self._most is None:
            self._most = state["most"]
        if not self._candidates.tuner_space:
            self._candidates.tuner_space = decode(state["space"])
        if (saved := state["events"]) is not None:
            at = saved["at"]
            records = saved["records"] if at is None else Journal(*decode(at)).read()
            self._begin(records, saved["run"])
            self.evaluations.await_open()

    def save(self, checkpoint_path: str) -> None:
        """Save the state to a file, as JSON."""
        Path(checkpoint_path).write_text(json.dumps(self.get_state()), encoding="utf-8")
        self._write_answer()

    def restore(self, checkpoint_path: str) -> None:
        """Go on from a file that `save` has written (see `set_state`)."""
        self.set_state(json.loads(Path(checkpoint_path).read_text(encoding="utf-8")))

    def __getstate__(self) -> dict[str, Any]:
        log = self.evaluations.log
        state = self.get_state() | {"events": log and log.saved(elsewhere=False)}
        # A log holds functions, and a journal may hold an open connection.
        return {
            "attributes": self.__dict__ | {"evaluations": None, "_journal": None},
            "state": state,
        }

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved["attributes"])
        self.evaluations = Evaluations(self._trials, self._now)
        self.set_state(saved["state"])

    # What is done inside.

    def _begin(self, records: Records | None = None, run: str | None = None) -> EventLog:
        """Begin the experiment, or go on with one that has these records."""
        for name, value in (("metric", self._metric), ("mode", self._mode)):
            if not value:
                raise ValueError(
                    f"{name} is not known: give it to the search, {type(self).__name__}(..., "
                    f"metric='accuracy', mode='max'), or to TuneConfig beside a param_space."
                )
        trials, candidates = self._trials, self._candidates
        trials.look_up(candidates.space)
        known = (records or {}).get(SHARED, {}).get("drawn")
        source = candidates.source(self._seed, trials.levels[-1], known and decode(known))
        digest = {"search": type(self).__name__, **trials.digest()}
        if isinstance(candidates.given, list):
            digest[self._arms_name] = list(map(fingerprint, candidates.given))
        notes = {"drawn": encode(source)} if isinstance(candidates.given, int) else {}
        sign = -1.0 if self._mode == "min" else 1.0
        settings = trials.settings(source, seed=self._seed, sign=sign, describe=described)
        log = EventLog(settings, digest, self._journal, self._now)
        n = None if trials.replicate is None else len(trials.replicates)
        log.tell(Found(id="replicates", order=log.experiment.order, replicates=n), **notes)
        self.evaluations.log = log
        if records is None:
            for words in trials.announcement(settings, str(self._metric)):
                _logger.info(words)
        else:
            log.take_over(records, run)
            self._shown.relearn(log)
        return log

    def _take(self, name: str, value: str | None) -> None:
        """Take a metric or a mode, unless there is another one."""
        own = getattr(self, f"_{name}")
        if value and own and value != own:
            raise ValueError(
                f"{name}={shown(value)} of TuneConfig or of the saved search is not the {own!r} "
                f"of this search; give the same."
            )
        setattr(self, f"_{name}", own or value)

    @property
    def _log(self) -> EventLog:
        assert self.evaluations.log is not None
        return self.evaluations.log

    def _now(self) -> float:
        return self._clock()

    def _finish(self) -> str:
        if not self.evaluations.is_over:
            self.evaluations.is_over = True
            _logger.info("The race is over: %s.", self._log.experiment.answer().reason.rstrip("."))
            self._write_answer()
        return str(self.FINISHED)

    def _value(self, trial_id: str, result: Mapping[str, Any]) -> float | None:
        """Return the metric; None if it is missing, no number or not finite."""
        value = as_number(reported := result.get(str(self._metric)))
        if value is None and reported is not None:
            what = f"trial {trial_id} reported {self._metric}={reported!r}, which is no number"
            self._warn_once("no number", f"{what}: it counts as failed. Report float(...).")
        return value if value is not None and Observation(value).has_value else None

    def _learn_what_ran(
        self, configuration: Mapping[str, Any], result: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Learn and return what a trial ran with where Tune has placeholders."""
        names = [*placeholders_in(configuration), *self._candidates.redrawn]
        ran = {name: result[f"config/{name}"] for name in names if f"config/{name}" in result}
        for name in self._shown.learn(configuration, ran):
            words = f"param_space[{name!r}] is drawn anew in each trial. To draw it once for each"
            self._warn_once(f"redrawn {name}", f"{words} configuration, give the search space=....")
        return ran

    def _object_to_budget(self) -> None:
        if (objection := self._trials.objection()) is not None:
            self._warn_once("budget", objection, stacklevel=4)

    def _warn_once(self, about: str, message: str, stacklevel: int = 3) -> None:
        """Warn about something, as from the caller of the search, unless its user was told."""
        if about not in self._told:
            self._told.add(about)
            warnings.warn(message, stacklevel=stacklevel + 1)

    def _write_answer(self, urgent: bool = True) -> None:
        if self.evaluations.log is not None:
            self._log.write_answer(self.recommendation, urgent)
