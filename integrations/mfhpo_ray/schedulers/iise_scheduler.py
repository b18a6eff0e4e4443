"""`IISEScheduler`: IISE over trials that report progress, pause at levels, and go on later."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Repeater
from ray.tune.utils import flatten_dict

from mfhpo import IISE, Labels, Observation, Pull
from mfhpo._validation import check_count, check_name
from mfhpo.certification.choice import make_elimination
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.noise import EstimatedNoise
from mfhpo.racing.declaration import Declaration
from mfhpo.racing.options import IISEOptions, runs, with_defaults
from mfhpo.racing.race import Race
from mfhpo_ray.experiment.losses import is_tried_again, with_losses
from mfhpo_ray.experiment.open_pulls import with_waiting
from mfhpo_ray.experiment.recommendation import TuneRecommendation
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Entry
from mfhpo_ray.schedulers.level_order import Arrived, Place
from mfhpo_ray.schedulers.level_race import LevelRace
from mfhpo_ray.schedulers.levels import Meter, levels_of
from mfhpo_ray.schedulers.room import searchers_of
from mfhpo_ray.schedulers.runs import Run

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from typing_extensions import Unpack


@runs(IISE, IISEOptions, epsilon=None, measure=None)
class IISEScheduler(ArmScheduler):
    """Races configurations over replicates, short runs first, and certifies the best.

    A trial is one replicate of an arm: the arm is the configuration without the replicate's key.
    Trials run to a level of `time_attr` and pause there; `mfhpo.IISE` decides which one to start,
    to resume or to stop. When an arm leaves the race, its running trials are stopped. Those that
    wait stay until the end, in case that values contradict the declared bias. The race ends when
    one arm is left, the leader is within `epsilon` of all others, or no replicates are left. What
    `recommendation` guarantees is what `IISESearch` does.

    Parameters
    ----------
    time_attr
        What the levels are of, in every result: a number that grows while a trial trains.
    max_t
        The time at which a trial is complete; the levels are then geometric.
    grace_period
        The least level that is made from `max_t`. None: 1.
    reduction_factor
        How many times longer each level made from `max_t` is than the one before. None: 3.
    levels
        The levels themselves, increasing, the last one complete, in place of `max_t`.
    costs
        Cost of a trial up to each level; "measured" for seconds; None for proportional to the
        level. A trial that goes on from a checkpoint is charged with the increment.
    prices
        See `mfhpo_ray.searchers.options.FidelitySearchOptions`. No other scheduler is needed.
    seed
        Of the pilot.
    **options
        See `mfhpo.racing.options.IISEOptions`. A level is a fidelity there, and a
        replicate's value an evaluation. Without `measure`, the winner gets ten values at the last
        level, or as many as each arm has.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments; when the trials are known, if an arm has too few replicates to estimate
        what was not declared.

    Notes
    -----
    Each configuration needs replicates: ``{"seed": tune.grid_search(list(range(20)))}`` gives it
    twenty. Where the noise is estimated, the certificate needs 17 values of the winner (at
    ``delta=0.05``). Trials that save checkpoints go on where they paused. The others begin anew at
    each level, which costs more, and is counted. A cluster that grows on demand is not asked to.

    Values of an arm at a level count in the order in which its trials were sent there, as in
    `IISESearch`. After a crash of the driver, ``Tuner.restore`` goes on with everything observed.

    Examples
    --------
    ``constant_grid_search`` keeps a sampled configuration for all seeds of the grid::

        tune_config = tune.TuneConfig(
            metric="accuracy", mode="max", num_samples=20, scheduler=IISEScheduler(max_t=81),
            search_alg=BasicVariantGenerator(constant_grid_search=True),
        )
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        max_t: int | None = None,
        *,
        grace_period: int | None = None,
        reduction_factor: float | None = None,
        levels: Sequence[float] | None = None,
        costs: Sequence[float] | Literal["measured"] | None = None,
        prices: Mapping[str, float] | None = None,
        replicate: str | Collection[str] = "seed",
        arms: int | None = None,
        metric: str | None = None,
        mode: str | None = None,
        limit: float | None = None,
        memory_limit: float | None = None,
        seed: int = 0,
        **options: Unpack[IISEOptions],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(
            metric=metric,
            mode=mode,
            replicate=replicate,
            arms=arms,
            limit=limit,
            memory_limit=memory_limit,
        )
        given = levels_of(levels, max_t, grace_period, reduction_factor)
        check_name("time_attr", time_attr, "the key of a result")
        self._fidelity = Fidelity(time_attr, given, costs)
        self._meter = Meter(self._fidelity, prices)
        self._levels: tuple[Any, ...] = tuple(self._fidelity.levels or ())
        kind: Kind = "order" if own["variant"] == "order" else "max"
        self._declaration = Declaration.of(self._fidelity, own.pop("sigma"), own.pop("bias"), kind)
        if own["measure"] is not None:
            check_count("measure", own["measure"], 1)
        self._options = {**own, "seed": seed}
        self._make_policy(2, None)  # raises for what is wrong before any trial runs
        self._race: LevelRace  # from `_open` on
        self._n_observed = 0
        # Trials whose value at some level was left out: their process, or the driver, has died.
        self._lost: set[str] = set()

    def recommendation(self) -> TuneRecommendation:
        """Return the best answer so far; ValueError before any trial."""
        self._check_open()
        race = self._race
        answer = with_losses(race.policy.recommend(), len(self._lost))
        answer = self._without_more(answer, race.nothing_is_left)
        answer = with_waiting(answer, race.in_order.waited_for, race.policy.labels)
        config = self._runs.config(answer.arm)
        return TuneRecommendation.of(answer, self._sign, config, self._levels[answer.fidelity])

    def _make_policy(self, n_arms: int, replicates: int | None) -> Race:
        if replicates is not None:
            self._check_replicates(n_arms, replicates)
        options = dict(self._options)
        if options["measure"] is None:
            options["measure"] = 10 if replicates is None else min(10, replicates)
        problem = self._declaration.problem(n_arms, self._levels, self._sign)
        return make_elimination(problem, self._sign, options)

    def _undeclared(self) -> list[str]:
        """Return the names of what has to be estimated from replicates."""
        needs_bias = self._options["variant"] not in ("se", "mfe")
        missing = {
            "sigma": isinstance(self._declaration.noise, EstimatedNoise),
            "bias": needs_bias and self._declaration.bias is None,
        }
        return [name for name, is_missing in missing.items() if is_missing]

    def _check_replicates(self, n_arms: int, replicates: int) -> None:
        needed = self._options["pilot_pulls"]
        names = self._undeclared()
        if names and replicates < needed:
            key = self._replicate_keys[0]
            raise ValueError(
                f"{' and '.join(names)} cannot be estimated: some of the {n_arms} configurations "
                f"have only {replicates} replicate{'s' if replicates > 1 else ''}, and "
                f"pilot_pulls={needed} are needed. Give {key!r}: tune.grid_search(list(range(20))) "
                f"in param_space, with search_alg=BasicVariantGenerator("
                f"constant_grid_search=True), or wrap a search algorithm in "
                f"ray.tune.search.Repeater(..., repeat=20); or declare {'=..., '.join(names)}=..."
            )

    def _warn_if_not_repeated(self, search: Any) -> None:
        names = self._undeclared()
        if not names or search.is_finished():
            return
        first = next(iter(self._runs), None)
        config = flatten_dict(first.trial.config) if first else {}
        repeater = any(isinstance(each, Repeater) for each in searchers_of(search))
        if first is not None and config.keys().isdisjoint(self._replicate_keys) and not repeater:
            warnings.warn(
                f"{' and '.join(names)} will be estimated from replicates, but nothing seems to "
                f"repeat what the search algorithm suggests; wrap it in "
                f"ray.tune.search.Repeater(..., repeat=20), or declare {'=..., '.join(names)}=...",
                stacklevel=2,
            )

    # What `ArmScheduler` asks.

    def _open(self, n_arms: int, search: Any) -> None:
        complete = self._runs.n_arms == n_arms
        policy = self._make_policy(n_arms, min(self._runs.n_replicates) if complete else None)
        policy.labels = Labels(
            arm=self._runs.label,
            fidelity=lambda fidelity: f"{self._fidelity.name}={self._levels[fidelity]!r}",
            value=lambda value: self._sign * value,
        )
        self._race = LevelRace(policy, self._runs, n_arms, len(self._levels))
        self._warn_if_not_repeated(search)

    def _on_complete_search(self) -> None:
        race = self._race
        # Some arms were counted on, and turned out to repeat others.
        missing = sorted(arm for arm in race.active if arm >= self._runs.n_arms)
        for arm in missing:
            race.policy.withdraw(arm, duplicate_of=0)
        if missing:
            self._sweep()
        # What waited for more suggestions waits no longer.
        self._may_find_one = True
        if race.policy.piloting and race.active and not self._closed:
            numbers = self._runs.n_replicates
            self._check_replicates(len(race.active), min(numbers[arm] for arm in race.active))

    def _recover(self, entries: Sequence[Entry]) -> None:
        race = self._race
        arrivals: list[tuple[int, Place, Arrived]] = []
        over = set()
        for record, arm, run in entries:
            observed = [list(entry) for entry in record["observed"]]
            if run is not None and record["over"]:
                over.add(run.trial.trial_id)
            elif run is not None and not run.trial.is_finished():
                # Ray tries a trial again that has failed; what was paid for it is owed.
                while observed and observed[-1][2] is None:
                    run.owed += observed.pop()[3]
            places = [Place(*place) for place in record["places"][: len(observed)]]
            if run is not None:
                run.reached, run.observed, run.places = record["reached"], observed, places
            for (number, fidelity, value, cost), place in zip(observed, places, strict=True):
                self._n_observed = max(self._n_observed, number)
                arrived = Arrived(run, Pull(arm, fidelity), Observation(value, cost))
                arrivals.append((number, place, arrived))
        unfinished = {run.trial.trial_id: run for run in self._runs if not run.trial.is_finished()}
        alive = {name: run for name, run in unfinished.items() if name not in over}
        race.recover(arrivals, alive, [run for _, _, run in entries if run is not None])
        for run in self._busy.values():  # what a search algorithm suggested before the race began
            is_in = run.arm in race.active and not race.in_order.has_ticket(run)
            if run.granted is not None and is_in:
                race.in_order.send(run, run.granted)
        self._sweep()
        if not self._over:
            self._lost = self._lost_trials(alive)

    def _lost_trials(self, alive: Collection[str]) -> set[str]:
        """Return the trials that had not come to a level, and that Ray does not run again."""
        known: set[str] = set()
        awaited: set[tuple[str, int]] = set()
        there: set[tuple[str, int]] = set()
        for name, record in self._notebook.records.items():
            if record["lost"]:
                known.add(name)
            for entry, place in zip(record["observed"], record["places"], strict=True):
                there.add((name, entry[1]))
                awaited.update((other, entry[1]) for other in Place(*place).awaited)
        stopped = {run.trial.trial_id for run in self._runs if self._is_out(run.arm)}
        missing = {name for name, _ in awaited - there}
        return (known | (missing - stopped)).difference(alive)

    @property
    def _over(self) -> bool:
        return self._is_open and self._race.policy.finished

    def _is_out(self, arm: int) -> bool:
        return not self._is_open or arm not in self._race.active

    def _grant_first(self, run: Run) -> None:
        run.granted = 0
        if not self._is_out(run.arm):
            self._race.enter(run)

    def _next(self) -> Run | None:
        order = self._race.choose(self._busy.values())
        if order is None:
            return None
        order.run.granted = order.level
        order.run.began_at = None
        return order.run

    def _on_result(self, run: Run, result: Mapping[str, Any]) -> str:
        if run.granted is None:
            return str(TrialScheduler.CONTINUE)
        self._meter.note(run, result)
        if run.shown < self._levels[run.granted] or self._metric not in result:
            return str(TrialScheduler.CONTINUE)
        failed = self._observe(run, result, bisect_right(self._levels, run.shown) - 1)
        if failed or run.reached == len(self._levels) - 1 or self._over:
            return str(TrialScheduler.STOP)
        # An arm that is out may come back, if bounds that were declared are contradicted.
        if not self._is_out(run.arm):
            run.granted = self._race.go_on(run, self._busy.values())
        return str(TrialScheduler.PAUSE if run.granted is None else TrialScheduler.CONTINUE)

    def _on_end(self, run: Run, result: Mapping[str, Any]) -> None:
        if run.granted is None:
            return
        if self._metric not in result:
            self._on_failure(run)
            return
        self._meter.note(run, result)
        level = self._levels[run.granted]
        if run.shown < level:
            self._warn_once(
                "length",
                f"trial {run.trial.trial_id} ended at {self._fidelity.name}={run.shown:g}, before "
                f"the level {level!r}: its last value counts as the one there, and so will others. "
                f"Give max_t={run.shown:g}, or levels that trials reach.",
            )
        # There will be no other value of it, at any level.
        self._observe(run, result, len(self._levels) - 1)

    def _on_retry(self, run: Run) -> None:
        # Not the arm's fault as long as Ray tries: a node that dies takes many trials with it.
        if run.granted is not None:
            run.owed = self._meter.pay(run)
            if not is_tried_again(run.trial) and not self._over:
                self._lost.add(run.trial.trial_id)
                self._note(run, is_over=False)
        self._drop(run)

    def _on_failure(self, run: Run) -> None:
        granted, run.granted = run.granted, None
        if granted is not None and self._is_open:
            failure = Observation(None, self._meter.pay(run))
            self._tell(run, Pull(run.arm, granted), failure, is_over=False)

    def _leave(self, run: Run) -> None:
        self._runs.retire(run)
        self._drop(run)
        if self._complete and self._race.nothing_is_left:
            # Ray may end the experiment without another step of its loop.
            self._race.policy.stop_measuring()
        super()._leave(run)

    def _close(self, tune_controller: TuneController) -> None:
        if not self._closed:
            self._race.policy.stop_measuring()
        super()._close(tune_controller)

    def _observe(self, run: Run, result: Mapping[str, Any], last: int) -> bool:
        """Tell the policy of a run at its level; return whether it gave no value.

        Where results are far apart, the levels between them, up to `last`, have the same value.
        """
        assert run.granted is not None
        first, run.granted = run.granted, None
        for fidelity in range(first, max(first, last) + 1):
            observation = Observation(self._value(result), self._meter.pay(run))
            run.reached = fidelity
            is_over = fidelity == len(self._levels) - 1 or observation.failed
            self._tell(run, Pull(run.arm, fidelity), observation, is_over=is_over)
            if observation.failed:
                break
        return observation.failed

    def _tell(self, run: Run, pull: Pull, observation: Observation, *, is_over: bool) -> None:
        """Take in an observation; a trial that `is_over` has no more to say if it is run."""
        self._n_observed += 1
        place = self._race.in_order.place(run, pull)
        run.observed.append([self._n_observed, pull.fidelity, observation.value, observation.cost])
        run.places.append(place)
        self._learn_from(self._race.in_order.arrive(place, Arrived(run, pull, observation)))
        self._note(run, is_over=is_over)
        self._sweep()

    def _note(self, run: Run, *, is_over: bool) -> None:
        record = {
            "observed": run.observed,
            "places": run.places,
            "reached": run.reached,
            "over": is_over,
            "lost": run.trial.trial_id in self._lost,
        }
        self._write(run, record)

    def _drop(self, run: Run) -> None:
        """Wait no longer for a run: its process has died, or Ray has stopped it."""
        if self._is_open:
            self._learn_from(self._race.in_order.drop(run))

    def _learn_from(self, released: Sequence[Arrived]) -> None:
        if self._closed:
            return
        self._may_find_one = True
        self._race.take_in(released)

    def _sweep(self) -> None:
        """Stop the running trials of arms that have left the race."""
        for run in self._race.sweep(self._busy.values()):
            self._doom(run)
        if self._over:
            self._note_answer()
