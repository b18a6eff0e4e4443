"""`MFEliminationScheduler`: stops trials that cannot win, by bounds that the user declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mfhpo._validation import (
    check_count,
    check_increasing,
    check_name,
    check_nonnegative,
    check_number,
)
from mfhpo.experiment.answer import Answer, losses_in_words
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.identification.curves.gains import Bound, checked_bounds, gains_of
from mfhpo.identification.curves.staged_elimination import BoundedElimination
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import runs, with_defaults
from mfhpo_ray.experiment.encoding import described
from mfhpo_ray.experiment.options import LevelOptions
from mfhpo_ray.experiment.recommendation import in_terms_of_tune
from mfhpo_ray.schedulers.arm_scheduler import ArmScheduler, Config
from mfhpo_ray.schedulers.curves import CurveRace, CurveSettings
from mfhpo_ray.schedulers.level_race import LevelRace
from mfhpo_ray.schedulers.levels import Meter, levels_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@runs(BoundedElimination, LevelOptions, replicate="seed")
class MFEliminationScheduler(ArmScheduler):
    """Stops a trial when another one is surely better, by bounds on what curves still gain.

    The counterpart of `mfhpo_optuna.MFEliminationPruner`. With declared bounds, it stops no trial
    that would have ended above all the others. The race ends when no other arm's bounds reach the
    best one. One trial of each configuration will do. With replicates, an arm is the configuration
    without their key. It loses all its trials at once, and those that were waiting never start.

    Without bounds it promotes trials by a model, and evaluates the finalists again: it is
    `mfhpo_ray.IISEScheduler` on trials of one seed each.

    Parameters
    ----------
    time_attr, max_t
        See `mfhpo_ray.IISEScheduler`.
    bias
        Bounds on what is still gained, as for the pruner: ``{level: bound}``, whose levels are then
        the ones at which trials are judged, below `max_t`; or a function of the level. A bound is a
        largest distance from the final value, or a pair (least, largest) for the final value minus
        the value. None: trials are promoted.
    noise
        Largest distance of a reported value from the mean of its trial's arm at that level, at
        least 0. It has no part where trials are promoted.
    n_startup_trials
        Nothing is stopped before this many trials have come to a level. None: 0. It has no part
        where trials are promoted.

    Notes
    -----
    * What decides. With bounds, the scheduler judges curves and chooses who goes on, without the
      policies of the other schedulers. It is not Algorithm 3 of "Multi-Fidelity Multi-Armed Bandits
      Revisited" (NeurIPS 2023), which `MFEliminationSearch` runs.
    * The order. Where trials pause at no cost, all come to the first level. From there on, the one
      that may get highest goes first. A trial that would begin anew after a pause runs on until it
      is stopped. An arm's second trial starts only if its first has ended and the arm may still be
      the best.
    * Failures. A trial fails that crashes for good, runs into a limit, or reports a value that
      is no finite number. An arm whose every trial failed counts against no other.
    * Contradictions. Where a trial contradicts the bounds beyond the noise, a
      `mfhpo.BiasContradictedWarning` says so. The bound is widened as far as needed, and nothing is
      certified any more.

    Examples
    --------
    Accuracies that never fall, and gain at most 0.5, 0.2 and 0.1 after epochs 1, 3 and 9:

    >>> from mfhpo_ray import MFEliminationScheduler
    >>> scheduler = MFEliminationScheduler(
    ...     max_t=27, bias={1: (0.0, 0.5), 3: (0.0, 0.2), 9: (0.0, 0.1)}
    ... )
    """

    def __init__(
        self,
        time_attr: str = "training_iteration",
        max_t: int | None = None,
        *,
        bias: Mapping[int, Bound] | Mapping[float, Bound] | Callable[[float], Bound] | None = None,
        noise: float = 0.0,
        n_startup_trials: int | None = None,
        **options: Unpack[LevelOptions],
    ) -> None:
        own = with_defaults(type(self), options)
        super().__init__(own)
        check_name("time_attr", time_attr, "the key of a result")
        bounds: dict[float, Bound] | None = None
        if bias is not None and not callable(bias):
            bounds = checked_bounds(bias, lambda level: check_number("bias: level", level))
        self._bias = bias if callable(bias) else bounds
        levels = levels_of(max_t, own, bounds)
        self._levels = [check_number("levels", level) for level in levels]
        check_increasing("levels", self._levels)
        if self._levels[0] <= 0.0 or len(self._levels) < 2:
            raise ValueError(
                f"levels must be at least two, and above 0, got {self._levels}: else nothing would "
                f"ever be stopped. Lower grace_period or reduction_factor."
            )
        self._noise = check_nonnegative("noise", noise)
        self._n_startup_trials = check_count(
            "n_startup_trials", 0 if n_startup_trials is None else n_startup_trials, 0
        )
        self._fidelity = Fidelity(time_attr, levels, self._levels)
        self._meter = Meter(self._fidelity, None)
        if bias is not None:
            self._make_judge(1.0)  # raises for what is wrong before any trial runs

    def recommendation(self) -> Answer:
        """Return the best answer so far; ValueError before any trial."""
        if not isinstance(self._course, CurveRace):
            return super().recommendation()
        finished = self._closed or self._over or (self._all_known and self._runs.all_over)
        experiment = self._course.experiment
        cost = experiment.answer().cost
        answer = self._course.judge.recommend(cost, finished, self._all_known)
        n_lost = len(experiment.ledger.lost)
        lost = losses_in_words(n_lost, None, may_have_worker=False)
        answer = replace(answer, conditions=(*answer.conditions, *lost))
        level = self._levels[answer.fidelity]
        level = int(level) if level == int(level) else level
        config = {} if answer.arm is None else self._runs.configurations[answer.arm]
        return in_terms_of_tune(Answer.of(answer, self._sign, dict(config), level), dict)

    # What `ArmScheduler` asks.

    def _settings(self, candidates: Sequence[Config], n_arms: int, search: Any) -> Settings:
        if self._bias is None:
            if len(candidates) < n_arms:
                raise ValueError(
                    f"{type(self).__name__} has no bias=..., and promotes trials that are all "
                    f"known, but the search algorithm suggests them one at a time; declare bias, "
                    f"leave search_alg out, or take mfhpo_ray.SpaceSearch as search_alg."
                )
            return self._promoted(candidates, self._fidelity)
        return CurveSettings(
            candidates=candidates, n_levels=len(self._levels), sign=self._sign, describe=described
        )

    def _make_course(self, *parts: Any) -> LevelRace:
        if self._promotion is not None:
            return super()._make_course(*parts)
        judge = self._make_judge(self._sign)
        return CurveRace(*parts, judge=judge, slots=self._slots, sign=self._sign)

    @property
    def _over(self) -> bool:
        """True if the answer is certain."""
        if super()._over:
            return True
        if not isinstance(self._course, CurveRace) or not self._all_known:
            return False
        judge = self._course.judge
        return len(judge.active) == 1 and judge.n_finished(next(iter(judge.active))) > 0

    @property
    def _all_known(self) -> bool:
        """Whether no other arms will come."""
        return self._complete or self._runs.n_arms >= self._n_raced

    def _make_judge(self, sign: float) -> BoundedElimination:
        assert self._bias is not None
        gains = gains_of(self._bias, self._levels, sign)
        return BoundedElimination(gains, self._noise, self._n_startup_trials)
