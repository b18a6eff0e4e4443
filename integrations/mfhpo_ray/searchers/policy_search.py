"""The searcher that runs a policy in Ray Tune: each trial is one pull."""

import abc
import json
import logging
import secrets
import time
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from ray.tune.search import Searcher

from mfhpo import Labels, Observation, Policy, Pull
from mfhpo._validation import MOST_SEED, check_count, check_dictionaries, check_name, shown
from mfhpo.knowledge.replicate import replicate_of
from mfhpo_ray.experiment.encoding import decode, differ
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.experiment.losses import Losses
from mfhpo_ray.experiment.metric import as_number, check_aim
from mfhpo_ray.experiment.notebook import Notebook
from mfhpo_ray.experiment.open_pulls import MOST_PASSED_OVER, OpenPulls
from mfhpo_ray.experiment.pulls import Ended, UnderWay, replicate_seed, scalars
from mfhpo_ray.experiment.recommendation import Answer
from mfhpo_ray.experiment.replay import Replay
from mfhpo_ray.experiment.space import Config, assign
from mfhpo_ray.experiment.time_limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.arms import Arms, ArmsLike
from mfhpo_ray.searchers.candidates import Candidates

PolicyT = TypeVar("PolicyT", bound=Policy)

_logger = logging.getLogger("mfhpo_ray")

# Seconds after which the answer so far is written to the experiment's storage again.
_ANSWER_PERIOD = 5.0

# Of saved states: those of mfhpo 0.1.4 have none.
_STATE_VERSION = 2


class PolicySearch(Searcher, abc.ABC, Generic[PolicyT]):
    """Runs a policy: each trial is one pull, and the run ends by itself.

    See `SearchOptions` for the arguments; `owned` is the key of the configuration, besides those of
    the seed and the replicate, that the search itself sets.
    """

    # Whether an arm's pulls at a fidelity are told in the order in which they were begun.
    _in_order = True
    # Whether trials that still run when the search has finished are stopped.
    stops_surplus = True
    _levels: tuple[Any, ...] = (None,)  # of the fidelity

    def __init__(
        self,
        *,
        metric: str | None,
        mode: str | None,
        arms: ArmsLike,
        space: Mapping[str, Any] | None,
        owned: str,
        seed_key: str | None,
        replicate: str | None = None,
        seed: int | None,
    ) -> None:
        check_aim(metric, mode)
        if seed_key is not None:
            check_name("seed_key", seed_key, "a key of the configuration or None")
        if seed_key == owned:
            raise ValueError(f"seed_key={seed_key!r} is what the search sets to something else.")
        super().__init__(metric=metric, mode=mode)
        self._owned = owned
        self._seed_key = seed_key
        self._replicate = replicate
        self._replicates: Sequence[Any] = ()  # its values, once the space is known
        self._keys = tuple(key for key in (owned, seed_key, replicate) if key is not None)
        self._candidates = Candidates(arms, space, self._keys)
        # Without a seed, one is drawn here, and saved with the experiment.
        self._seed = (
            secrets.randbits(31) if seed is None else check_count("seed", seed, 0, MOST_SEED)
        )
        self._most: int | None = None
        self._clock = time.monotonic
        self._arms = Arms()  # until the race begins
        self._policy: PolicyT | None = None
        self._replay = Replay()  # what was done to the policy
        self._over = False
        self._announced_end = False
        self._open = OpenPulls(self._in_order)
        self._ended = 0
        # Pulls for the answer's means that were left out: their process, or the driver, has died.
        self._n_lost = 0
        # Whether pulls of a saved state may be waited for that Tune does not run again.
        self._is_unsure_of_trials = False
        self._notebook = Notebook()
        self._has_companion = False
        self._written_at = float("-inf")
        self._losses = Losses()
        self._warned: set[str | None] = set()

    # What differs from search to search.

    @abc.abstractmethod
    def _make_policy(self, n_arms: int, sign: float) -> PolicyT:
        """Make the policy; `sign` is -1 where the metric is minimised, and mirrored inside."""

    @abc.abstractmethod
    def _settings(self, pull: Pull) -> Any:
        """Return the value of the owned key."""

    @abc.abstractmethod
    def _observed(
        self, trial_id: str, begun: UnderWay, value: float | None, seconds: float, stopped_at: Any
    ) -> Observation:
        """Return what a pull gave, in the unit and the direction of the metric."""

    @abc.abstractmethod
    def _answer(self, policy: PolicyT) -> Answer:
        """Return the policy's answer in the terms of the user."""

    def _look_up_levels(self, space: Mapping[str, Any]) -> None:
        """Find what the search owns in the search space."""

    def _while_drawing(self) -> Any:
        """Return the owned key's value while configurations are drawn; functions may use it."""
        return None

    def _labels(self) -> Labels:
        """Return how messages name arms and levels."""
        return Labels(
            arm=lambda arm: f"arm {arm} {self._arms.shown(arm)}",
            value=lambda value: self._sign * value + 0.0,  # the sum makes 0 of -0
        )

    def _details(self) -> dict[str, Any]:
        """Return what the policy is made of beyond the arms, as plain JSON values."""
        return {}

    def _load_details(self, state: Mapping[str, Any]) -> None:
        """Take up what `_details` had saved, before the policy is made."""

    def _is_of_a_mean(self, pull: Pull) -> bool:
        """Return whether the answer is about the mean of values of such pulls."""
        return True

    def _stopped_at(self, result: Mapping[str, Any]) -> Any:
        """Return the limit of time at which a trial was stopped; None if it was for its memory."""
        return None if MEMORY_KEY in result else result.get(CENSORED_KEY)

    def _check_companion(self) -> None:
        """Raise or warn if the search needs its scheduler, and runs without."""

    # What users call.

    def scheduler(
        self, limit: float | None = None, memory_limit: float | None = None
    ) -> PullScheduler:
        """Return the scheduler to run the search with: ``scheduler=search.scheduler()``.

        A trial that is stopped at `limit` seconds gives no value, and the answer says how many were
        stopped. One that is stopped for holding more than `memory_limit` bytes is a failure. See
        `PullScheduler`.
        """
        return PullScheduler(limit=limit, memory_limit=memory_limit)

    def recommendation(self) -> Answer:
        """Return the best answer so far; ValueError before the race has begun."""
        return self._answer(self._made_policy())

    # What Tune calls.

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take metric, mode and space; False if the search does not draw all that is open."""
        check_aim(metric, mode)
        check_dictionaries("config", [config], "a search space of Tune")
        self._take("metric", metric)
        self._take("mode", mode)
        if spec.get("stop"):
            self.warn_of_stop(repr(spec["stop"]))
        if spec.get("num_samples") == 1:
            self._warn_once(
                "num_samples",
                "num_samples=1 lets the race make a single trial: give "
                "TuneConfig(num_samples=-1), the race ends by itself.",
                stacklevel=3,
            )
        if self._policy is not None:
            return True  # the race goes on with the arms that it has
        taken = self._candidates.take(config)
        self._look_up_levels(self._candidates.space)
        return taken

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Keep to a number of concurrent trials; Tune then leaves that to the search."""
        # Tune's own count would, after a restart, wait for trials that will never come.
        self._most = check_count("max_concurrent", max_concurrent, 1)
        return True

    def suggest(self, trial_id: str) -> Any:
        """Return the configuration of the next pull, with all keys that the search sets.

        ``FINISHED`` when the race is over; None if there is none now.
        """
        policy = self._begin() if self._policy is None else self._policy
        if self._is_over(policy):
            return self.FINISHED
        if self._is_unsure_of_trials:
            self._drop_those_that_are_gone()
        if self._open.has_begun:
            self._check_companion()
        if self._most is not None and len(self._open) >= self._most:
            return None
        pull = self._next_pull(policy)
        if self._is_over(policy):  # it was found that there is nothing more to evaluate
            self._write_answer(policy, urgent=True)
            return self.FINISHED
        if pull is None:
            return None
        return self._config(pull, self._open.begin(trial_id, pull, self._clock()))

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Note how long a trial has run; only its last result is an observation."""
        begun = self._open.get(trial_id)
        if begun is not None:
            begun.seconds = as_number(result.get("time_total_s"))

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Tell the policy what came back from a pull.

        Ignore an unknown trial. One that neither failed nor has a result was stopped before it ran.
        """
        begun = self._open.get(trial_id)
        if begun is None or self._policy is None:
            return
        if result is None and not error:
            self._tell_released(self._open.drop([trial_id]))
            return
        result = {} if result is None else result
        seconds = begun.took(result, self._clock())
        value = None if error or MEMORY_KEY in result else self._value(trial_id, result)
        observation = self._observed(trial_id, begun, value, seconds, self._stopped_at(result))
        arms = self._arms
        arms.learn(begun.pull.arm, result)
        ended = Ended(
            number=self._ended,
            pull=begun.pull,
            replicate=begun.replicate,
            observation=observation,
            config=arms.encoded(begun.pull.arm),
            result=scalars(result),
        )
        self._notebook.write(trial_id, ended.to_record())
        self._end(self._policy, ended)
        self._write_answer(self._policy, urgent=self._is_over(self._policy))

    # What its scheduler calls: see `PullScheduler`.

    def connect(self, journal: Journal) -> None:
        """Write each observation to the experiment's journal, and learn from what is there."""
        self._has_companion = True
        self._notebook.connect(journal)
        with of_this_version("the journal in the experiment's storage"):
            ends = [Ended.from_record(record) for record in self._notebook.records.values()]
        unknown = [ended for ended in ends if ended.number >= self._ended]
        if not unknown:
            return
        policy = self._begin() if self._policy is None else self._policy
        # What had been begun then holds back what was begun later, and no seed is used twice.
        self._open.foresee(unknown)
        for ended in sorted(unknown, key=lambda ended: ended.number):
            self._recover_arm(ended)
            self._end(policy, ended)
        lost, released = self._open.drop_lost()
        if not policy.finished:
            self._n_lost += sum(map(self._is_of_a_mean, lost))
        self._tell_released(released)
        _logger.info("%d observations are taken over from the journal.", len(unknown))
        self._write_answer(policy, urgent=True)

    def warn_of_stop(self, what: str) -> None:
        """Warn about the ``stop`` of the ``RunConfig``, named by `what`."""
        self._warn_once(
            "stop",
            f"RunConfig(stop={what}) may end trials early, whose last result then counts as what "
            f"they were to evaluate, which falsifies the answer. Drop it: trials end by "
            f"themselves, and search.scheduler(limit=...) ends those that hang.",
            stacklevel=4,
        )

    def note_resources(self, trial_id: str, resources: Mapping[str, float]) -> None:
        """Note what a trial holds while it runs: number of CPUs, GPUs and others, by name."""
        self._has_companion = True
        begun = self._open.get(trial_id)
        if begun is not None:
            begun.resources = dict(resources)

    def limit_of(self, trial_id: str) -> float | None:
        """Return the seconds after which the search wants a trial stopped; None for no limit."""
        return None

    def note_seconds(self, trial_id: str, seconds: float) -> None:
        """Note how long a trial has run since it was started; it may never have reported."""
        begun = self._open.get(trial_id)
        if begun is not None:
            begun.seconds = seconds

    def owe(self, trial_id: str, seconds: float) -> None:
        """Note what an attempt took that failed, and that Ray tries again."""
        begun = self._open.get(trial_id)
        if begun is not None:
            begun.owed += seconds
            begun.seconds = None

    def completed(self, trial_id: str) -> Mapping[str, Any] | None:
        """Return the last result of a trial that ended before a restart, or None."""
        record = self._notebook.records.get(trial_id)
        return None if record is None else record["result"]

    def keep(self, trial_ids: Collection[str]) -> None:
        """Drop all pulls that are not evaluated by one of these trials, which run or wait."""
        self._is_unsure_of_trials = False
        self._lose(set(self._open.trial_ids).difference(trial_ids))

    def lose(self, trial_id: str) -> None:
        """Drop a pull whose process or node has died: it is no failure of its arm.

        Pulls that an arm loses time and again count as failed: it takes its processes down itself.
        """
        begun = self._open.get(trial_id)
        if begun is not None and self._losses.excuse(begun.pull.arm):
            self._lose([trial_id])

    def discard(self, trial_id: str) -> None:
        """Drop a pull whose trial is stopped because the race is over."""
        self._lose([trial_id])

    @property
    def finished(self) -> bool:
        """Whether the race is over."""
        return self._policy is not None and self._is_over(self._policy)

    def get_state(self) -> dict[str, Any]:
        """Return what makes the same search again, as plain JSON values."""
        state: dict[str, Any] = {
            "version": _STATE_VERSION,
            "search": type(self).__name__,
            "metric": self._metric,
            "mode": self._mode,
            "seed": self._seed,
            "most": self._most,
            "replay": None,
        }
        if self._policy is None:
            return state
        return {
            **state,
            **self._details(),
            "arms": self._arms.state_dict(),
            "replay": self._replay.text,
            "open": self._open.state_dict(),
            "ended": self._ended,
            "lost": self._n_lost,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from what `get_state` gave, in a search made with the same arguments."""
        if state.get("version") != _STATE_VERSION:
            raise ValueError(
                "the saved state of the search is of another version of mfhpo, such as 0.1.4, "
                "whose states are read by that version alone. Go on with that version, or begin "
                "the experiment anew, under another RunConfig(name=...)."
            )
        if state["search"] != type(self).__name__:
            raise ValueError(
                f"the state is that of a {state['search']}, but this is a {type(self).__name__}; "
                f"restore the search that was saved."
            )
        self._take("metric", state["metric"])
        self._take("mode", state["mode"])
        self._seed = int(state["seed"])
        if self._most is None:
            self._most = state["most"]
        if state["replay"] is None:
            return
        self._load_details(state)
        arms = Arms.from_state_dict(state["arms"])
        self._candidates.check_same(arms)
        policy = self._begin(arms)
        self._replay = Replay(state["replay"])
        self._replay.again(policy)
        self._open = OpenPulls(self._in_order)
        self._open.load_state_dict(state["open"], self._clock())
        self._is_unsure_of_trials = len(self._open) > 0
        self._ended = int(state["ended"])
        self._n_lost = int(state["lost"])
        self._over = policy.finished

    def save(self, checkpoint_path: str) -> None:
        """Save the state to a file: a line of JSON, then what was done to the policy, as it is."""
        state = self.get_state()
        replay = state["replay"] or ""
        head = json.dumps({**state, "replay": None if self._policy is None else ""})
        Path(checkpoint_path).write_text(f"{head}\n{replay}", encoding="utf-8")
        if self._policy is not None:
            self._write_answer(self._policy, urgent=True)

    def restore(self, checkpoint_path: str) -> None:
        """Go on from a file that `save` has written (see `set_state`)."""
        head, _, replay = Path(checkpoint_path).read_text(encoding="utf-8").partition("\n")
        state = json.loads(head)
        self.set_state({**state, "replay": replay} if state.get("replay") == "" else state)

    def __getstate__(self) -> dict[str, Any]:
        attributes = self.__dict__.copy()
        # Policies hold functions, and a journal may hold an open connection.
        attributes |= {"_policy": None, "_notebook": Notebook(), "_has_companion": False}
        attributes["_replay"] = Replay()  # the state has it
        return {"attributes": attributes, "state": self.get_state()}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved["attributes"])
        if saved["state"]["replay"] is not None:
            self.set_state(saved["state"])

    def _begin(self, arms: Arms | None = None) -> PolicyT:
        """Make the policy, now that arms and direction are known."""
        for name, value in (("metric", self._metric), ("mode", self._mode)):
            if not value:
                raise ValueError(
                    f"{name} is not known: give it to the search, "
                    f"{type(self).__name__}(..., metric='accuracy', mode='max'). What TuneConfig "
                    f"has reaches a search only together with a param_space."
                )
        if arms is None:
            self._look_up_levels(self._candidates.space)
            arms = self._candidates.make(self._seed, self._while_drawing())
        self._arms = arms
        policy = self._make_policy(len(arms), self._sign)
        policy.labels = self._labels()
        self._policy = policy
        return policy

    def _take(self, name: str, value: str | None) -> None:
        """Take a metric or a mode, unless there is another one."""
        own = getattr(self, f"_{name}")
        if value and own and value != own:
            raise ValueError(
                f"{name}={shown(value)} of TuneConfig or of the saved search is not the {own!r} "
                f"of this search; give the same, or only one of them."
            )
        setattr(self, f"_{name}", own or value)

    @property
    def _sign(self) -> float:
        return -1.0 if self._mode == "min" else 1.0

    def _made_policy(self) -> PolicyT:
        if self._policy is None:
            raise ValueError(
                "there is nothing to recommend yet: no trial was suggested. A restored experiment "
                "has a copy of the search; ask recommendation(results)."
            )
        return self._policy

    def _is_over(self, policy: PolicyT) -> bool:
        if self._over and not self._announced_end:
            self._announced_end = True
            _logger.info("The race is over: %s.", policy.recommend().reason.rstrip("."))
        return self._over

    def _next_pull(self, policy: PolicyT) -> Pull | None:
        """Return the next pull that may begin, besides those of which too many wait."""
        pending = self._open.pending
        passed_over: list[Pull] = []
        while True:
            pull = self._wanted_pull(policy, [*pending, *passed_over])
            if pull is None or not self._open.is_full(pull):
                return pull
            self._warn_of_waiting(pull)
            # In blocks, each of these would be in a block of its own.
            alike = [each for each in passed_over if each.arm == pull.arm]
            if sum(each.fidelity == pull.fidelity for each in alike) >= MOST_PASSED_OVER:
                return None
            passed_over.append(pull)

    def _wanted_pull(self, policy: PolicyT, pending: Sequence[Pull]) -> Pull | None:
        """Return what the policy wants next, or None if there is none now."""
        pulls = policy.ask(1, pending)
        return pulls[0] if pulls else None

    def _config(self, pull: Pull, replicate: int) -> Config:
        config = self._arms.config(pull.arm)
        assign(config, self._owned, self._settings(pull))
        if self._seed_key is not None:
            assign(config, self._seed_key, self._seed_of(pull, replicate))
        self._assign_replicate(config, pull)
        return config

    def _seed_of(self, pull: Pull, replicate: int) -> int:
        return replicate_seed(
            self._seed,
            pull.arm,
            pull.fidelity,
            replicate,
            n_arms=len(self._arms),
            n_fidelities=len(self._levels),
        )

    def _assign_replicate(self, config: Config, pull: Pull) -> None:
        if self._replicate is not None and pull.block is not None:
            chosen = replicate_of(pull.block, self._seed, len(self._replicates))
            assign(config, self._replicate, self._replicates[chosen])

    def _value(self, trial_id: str, result: Mapping[str, Any]) -> float | None:
        """Return the metric; None if it is missing, no number or not finite."""
        reported = result.get(str(self._metric))
        value = as_number(reported)
        if value is None and reported is not None:
            self._warn_once(
                "no number",
                f"trial {trial_id} reported {self._metric}={reported!r}, which is no number: it "
                f"counts as failed. Report float(...).",
                stacklevel=3,
            )
        return value if value is not None and Observation(value).has_value else None

    def _warn_once(self, about: str, message: str, stacklevel: int) -> None:
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(message, stacklevel=stacklevel + 1)

    def _warn_without_companion(self, consequence: str) -> None:
        """Warn that limits of time are set, and that the search runs without its scheduler."""
        if not self._has_companion:
            self._warn_once(
                "companion",
                f"nobody enforces the limits: {consequence}. Give the Tuner "
                f"TuneConfig(scheduler=search.scheduler()), which stops any trial.",
                stacklevel=4,
            )

    def _warn_of_waiting(self, pull: Pull) -> None:
        for waits in self._open.waited_for:
            same = (waits.pull.arm, waits.pull.fidelity) == (pull.arm, pull.fidelity)
            if same and waits.trial_id not in self._warned:
                self._warned.add(waits.trial_id)
                _logger.warning(
                    "The race waits for %s. Values count in the order in which their trials "
                    "began, so no more of this arm is begun at this level until that trial ends. "
                    "If it hangs, stop it; search.scheduler(limit=...) does so by itself.",
                    waits.in_words(self._labels()),
                )

    def _end(self, policy: PolicyT, ended: Ended) -> None:
        self._ended = ended.number + 1
        for told in self._open.end(ended):
            self._tell(policy, told)

    def _lose(self, trial_ids: Collection[str]) -> None:
        """Leave out pulls that were under way; once the race is over they are merely surplus."""
        if self._policy is not None and not self._policy.finished:
            lost = [begun.pull for name in trial_ids if (begun := self._open.get(name))]
            self._n_lost += sum(map(self._is_of_a_mean, lost))
        self._tell_released(self._open.drop(trial_ids))

    def _tell_released(self, released: Iterable[Ended]) -> None:
        """Tell of pulls that waited for others which were dropped."""
        # Once the race is over, those are surplus, and these the quick ones among it.
        if self._policy is not None and not self._policy.finished:
            for ended in released:
                self._tell(self._policy, ended)

    def _drop_those_that_are_gone(self) -> None:
        """Drop the pulls of a saved state that Tune does not run again, if that is known."""
        gone = self._open.unannounced
        if self._notebook.is_kept:
            self._lose(gone)
        elif self._most is not None and len(gone) >= self._most:
            _logger.warning(
                "%d trials of the saved experiment are waited for. If Tune is not to run them "
                "again, as after Tuner.restore(resume_unfinished=False), they are waited for in "
                "vain: restore with TuneConfig(scheduler=search.scheduler()), which tells.",
                len(gone),
            )
        self._is_unsure_of_trials = False

    def _recover_arm(self, ended: Ended) -> None:
        """Take the configuration of a pull from the journal; ValueError if the arm has another."""
        arm = ended.pull.arm
        if differ(self._arms.encoded(arm), ended.config):
            raise ValueError(
                f"arm {arm} is {self._arms.config(arm)!r}, but {decode(ended.config)!r} in the "
                f"experiment's storage: "
                f"restore the search that was saved, or begin a new experiment, "
                f"RunConfig(name=...), with new arms."
            )

    def _tell(self, policy: PolicyT, ended: Ended) -> None:
        seen = ended.observation
        value = None if seen.value is None else self._sign * seen.value
        told = Observation(value, seen.cost, seen.censored_at)
        self._replay.tell(policy, ended.pull, told)
        if not seen.failed:
            self._losses.forget(ended.pull.arm)
        self._over = policy.finished

    def _write_answer(self, policy: PolicyT, urgent: bool) -> None:
        now = self._clock()
        if self._notebook.is_kept and (urgent or now - self._written_at >= _ANSWER_PERIOD):
            self._written_at = now
            answer = self._answer(policy)
            names = [*self._candidates.names, self._owned]
            self._notebook.write_answer(answer, self._metric, self._mode, names)
