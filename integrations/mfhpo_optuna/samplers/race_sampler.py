"""The sampler that searches, and certifies what it has found."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import optuna
from optuna.samplers import BaseSampler, BruteForceSampler, GridSampler
from optuna.trial import FrozenTrial

from mfhpo._validation import check_count, check_number
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import SigmaLike, check_options
from mfhpo.search import (
    HalvingSearch,
    ModelSearch,
    SearchPolicy,
    SearchRace,
    check_budget,
    fidelity_of,
    has_levels,
)
from mfhpo_optuna.recommendations import RaceRecommendation
from mfhpo_optuna.samplers.answer import Answer
from mfhpo_optuna.samplers.base import FidelitySampler
from mfhpo_optuna.samplers.policy_sampler import stop
from mfhpo_optuna.samplers.replicates import RECORD
from mfhpo_optuna.study.arms import Arms
from mfhpo_optuna.study.attributes import ARM_KEY, CERTIFICATE_KEY
from mfhpo_optuna.study.open_arms import OpenArms
from mfhpo_optuna.study.race import Race
from mfhpo_optuna.study.search_study import SearchStudy

__all__ = ["RaceSampler", "training_of"]

_CHOICES = 8  # of a trial that other workers get in the way of


class RaceSampler(FidelitySampler):
    """Searches a space with cheap and dear evaluations, then certifies the best it has found.

    When to use it: as you would use TPE with Hyperband, for any space and a budget of some tens or
    hundreds of full evaluations. A model of all levels of the fidelity decides which configuration
    to begin and which of those begun to go on with; it learns how far cheap levels can be relied
    on, and on what scale a number acts. At the end, those that may be the best are evaluated again,
    and the answer has a mean, an interval and a probability of being wrong. With the default share,
    that takes a budget of 40 full evaluations; below it, the answer is the search's own, and
    nothing is certain of its mean.

    What it guarantees: with probability at least 1 - `delta`, no configuration of the shortlist is
    better than the certified one by more than `epsilon`. Of configurations outside the shortlist
    nothing is certain. The intervals rest on the evaluations of the shortlist alone, never on
    values that the search has selected.

    Each trial is one evaluation of one configuration at one level of the fidelity, which the
    objective asks for like any other parameter. No pruner is needed: a `MedianPruner`, which is
    Optuna's default, is switched off, and `HyperbandPruner` does not go with it. When the budget is
    spent or the answer is certified, the study stops, and ``study.best_trial`` is the answer. Its
    value is the certificate's mean if it is certified, the end of the interval that is sure if it
    is not, and the search's own mean, which is a lucky one, where there is no certificate.

    Parameters
    ----------
    fidelity
        The parameter that sets how dear an evaluation is, such as the number of epochs: its name,
        or a `Fidelity` with levels and costs (bounds on its bias are not used). None: the objective
        has no such parameter, and each trial is a full evaluation.
    budget
        What may be paid, certificate included, in the unit of the fidelity's costs: for epochs, the
        sum of all trials' epochs; seconds, if the costs are "measured"; without a fidelity, trials.
        None, as `trials` and `seconds` are: the search goes on as long as the study does, and
        nothing is certified; see `conclude`, and `certify`. A study that is run again with a larger
        budget goes on with the search if that was not over, else with its certificate alone, which
        is then wrong with probability at most `delta` for each budget that it was looked at with.
    trials
        The budget in trials, instead of `budget`. A cheap trial counts as much as a dear one then,
        so that all are at the target.
    seconds
        The budget in seconds, instead of `budget`: what trials take, those of several workers added
        up. What they cost is measured, with a fidelity and without one, and guessed from that for
        the next ones, so that more or less may be spent: until the first trial ends nothing is
        known of it, and every worker begins one; and a first trial above the lowest level is begun
        whatever it may take, as long as anything is left. A trial that fails is paid for, one whose
        worker dies counts at what others have taken. A certificate takes ten evaluations at the
        target, some 100 full evaluations in all with the default share.
    certify_share
        Share of the budget that is kept for the certificate, in [0, 1). The certificate makes the
        answer's value honest and tells how sure it is; it seldom changes the answer, unless noise
        is large. Its first comparison takes five evaluations at the target of two or more
        configurations, or as many as can be paid for: two is the least, and what would not do for
        that is not kept.
    top
        Largest number of configurations on the shortlist, at least 2; fewer where what is kept
        would not do for two comparisons, after five and ten evaluations of each.
    delta
        Probability of a wrong certificate, in (0, 1).
    epsilon
        Tolerance in the unit of the objective. None: one standard deviation of the noise, as it is
        estimated.
    sigma
        What is known of the noise, for the certificate: a sub-Gaussian scale, `mfhpo.Bounded`,
        `mfhpo.Gaussian`; 0 says that there is none. None: estimated.
    checkpoints
        Whether the objective goes on from the same configuration's last level, so that only the
        difference of the costs is paid. It then keeps its checkpoint under `training_of`.
    proposer
        Another sampler of Optuna, such as ``TPESampler()``, to draw the configurations instead of
        the model of all levels. It is shown only those that were evaluated at the target, and they
        are advanced by asynchronous halving, which skips levels that do not agree with the target.
        None: the model draws them and advances them.
    max_failures
        A configuration of the shortlist without any value leaves after so many failures; one with
        values, once more than half of its evaluations surely fail.
    lease
        Seconds after which a running trial is no longer waited for. None: ten times what the
        slowest one would have taken, and at least a minute.
    progress
        Whether to write a line of progress to standard error. None: if it is a terminal.
    seed
        Makes a study with one worker repeatable. None: derived from the study's name.

    Raises
    ------
    TypeError, ValueError
        For arguments of the wrong type, or out of range.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import RaceSampler
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return (x - 0.3) ** 2 + 0.2 / epochs + 0.01 * rng.normal()
    >>> study = optuna.create_study(sampler=RaceSampler("epochs", budget=1500, seed=0))
    >>> study.optimize(objective)
    >>> abs(study.best_params["x"] - 0.3) < 0.1
    True
    """

    def __init__(
        self,
        fidelity: str | Fidelity | None = None,
        *,
        budget: float | None = None,
        trials: int | None = None,
        seconds: float | None = None,
        certify_share: float = 0.1,
        top: int = 8,
        delta: float = 0.05,
        epsilon: float | None = None,
        sigma: SigmaLike = None,
        checkpoints: bool = False,
        proposer: BaseSampler | None = None,
        max_failures: int = 3,
        lease: float | None = None,
        progress: bool | None = None,
        seed: int | None = None,
    ) -> None:
        if proposer is not None and not isinstance(proposer, BaseSampler):
            raise TypeError(
                f"proposer must be a sampler of Optuna such as TPESampler() or None, got "
                f"{proposer!r}."
            )
        if isinstance(proposer, (GridSampler, BruteForceSampler)):
            raise TypeError(
                f"proposer={type(proposer).__name__} enumerates a whole space and cannot draw "
                f"single configurations; leave it out, or give another one such as RandomSampler()."
            )
        super().__init__(
            fidelity=fidelity_of(fidelity, in_seconds=seconds is not None),
            arms=1,
            arm_sampler=proposer,
            lease=lease,
            progress=progress,
            seed=seed,
        )
        amount, unit = check_budget(budget, trials, seconds)
        if not isinstance(checkpoints, bool):
            raise TypeError(f"checkpoints must be True or False, got {checkpoints!r}.")
        if not 0.0 <= check_number("certify_share", certify_share) < 1.0:
            raise ValueError(f"certify_share must be in [0, 1), got {certify_share!r}.")
        check_options({"delta": delta, "epsilon": epsilon})
        self._checkpoints = checkpoints
        self._options: dict[str, Any] = {
            "budget": amount,
            "unit": unit,
            "certify_share": float(certify_share),
            "top": check_count("top", top, 2),
            "delta": delta,
            "epsilon": epsilon,
            "sigma": sigma,
            "max_failures": check_count("max_failures", max_failures, 1),
        }
        self._make_policy(1, (1, 2), 0, 1.0)  # raises for a bad budget or sigma now

    # What users call.

    def recommendation(self, study: optuna.Study) -> RaceRecommendation:
        """The best answer so far, with its certificate as far as there is one.

        Parameters
        ----------
        study
            The study that was run with this sampler, or with one made with the same arguments.

        Raises
        ------
        ValueError
            If no trial has told the levels of the fidelity yet.
        """
        answer = super().recommendation(study)
        with self._lock:
            race = self._search_race(self._read(study))
            content = {name: getattr(answer, name) for name in answer.__dataclass_fields__}
            return RaceRecommendation(
                **content,
                tried=race.tried,
                at_target=len(race.search.finished_arms()),
                certificate=race.certificate(),
            )

    def conclude(self, study: optuna.Study) -> None:
        """Make the best answer so far ``study.best_trial``, without waiting for the budget's end.

        Single trials are no answers and never best trials; this adds one that stands for the
        recommended configuration. A race that ends by itself does this, too.

        Parameters
        ----------
        study
            The study that was run with this sampler, or with one made with the same arguments.

        Raises
        ------
        ValueError
            If no trial has told the levels of the fidelity yet.
        """
        with self._lock:
            race = self._read(study)
            self._search_race(race)
            self._conclude(study, race)

    # What Optuna calls.

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose the pull that the trial evaluates, and note it where other workers see it."""
        super().before_trial(study, trial)
        if len(study.directions) > 1:
            return
        with self._lock:
            for _ in range(_CHOICES):
                race = self._as_search(self._read(study))
                other = race.give_way(trial)
                if other is None:
                    break
                self._write(study, trial, race.attributes(other))
            if trial.number in race.over:
                self._end(study, race, trial)

    # What differs from a race among given arms.

    def _new_arms(self, seed: int) -> Arms:
        return OpenArms(self._owned, seed)

    def _make_race(self, study: optuna.Study, arms: Arms, seed: int) -> Race:
        if not isinstance(arms, OpenArms):
            raise TypeError(f"arms must be OpenArms, got {arms!r}.")

        if has_levels(self._fidelity):
            self._note_fidelity(study)

        def make_race(levels: tuple[Any, ...], sign: float) -> SearchRace:
            return self._policy(levels, seed, sign, arms)

        return SearchStudy(study, arms, self._fidelity, make_race, self._lease)

    def _make_policy(
        self, n_arms: int, levels: Sequence[Any], seed: int, sign: float
    ) -> SearchRace:
        return self._policy(levels, seed, sign, OpenArms(self._owned, seed))

    def _policy(self, levels: Sequence[Any], seed: int, sign: float, arms: OpenArms) -> SearchRace:
        costs = self._fidelity.guessed_costs(levels)
        kind: type[SearchPolicy] = ModelSearch if self._arm_sampler is None else HalvingSearch
        return SearchRace(
            kind(costs, continues=self._checkpoints, seed=seed),
            measured=self._fidelity.costs == "measured",
            sign=sign,
            params=arms.params,
            **self._options,
        )

    def _as_search(self, race: Race) -> SearchStudy:
        if not isinstance(race, SearchStudy):
            raise TypeError(f"race must be a SearchStudy, got {race!r}.")
        return race

    def _end(self, study: optuna.Study, race: SearchStudy, trial: FrozenTrial) -> None:
        """End the loop when nothing is left to begin, though trials may still be under way."""
        if not stop(study):
            race.over.discard(trial.number)
            warnings.warn(
                f"trial {trial.number} has no share in the budget, which is spent or promised to "
                f"trials under way: it runs, but does not count. Stop asking when "
                f"sampler.recommendation(study).finished.",
                stacklevel=4,
            )
        elif not race.goes_on_here:
            # Else whoever ends last concludes; other processes may be lost, or conclude anew.
            self._conclude(study, race)

    def _search_race(self, race: Race) -> SearchRace:
        if not isinstance(race.policy, SearchRace):
            raise ValueError("no trial has asked for the fidelity yet.")
        return race.policy

    def _values_of_arms(self, race: Race) -> list[tuple[int, float]]:
        return race.drawn() if isinstance(race, SearchStudy) else []

    def _answer(self, race: Race) -> Answer:
        answer = super()._answer(race)
        if math.isfinite(answer.value):
            return answer
        return replace(answer, value=answer.mean)

    def _is_repeat(self, answer: Answer, earlier: Mapping[str, Any]) -> bool:
        now = answer.attributes[CERTIFICATE_KEY]
        same = bool(earlier["arm"] == now["arm"] and earlier["trials"] == now["trials"])
        return same or super()._is_repeat(answer, earlier)


def training_of(trial: optuna.Trial | FrozenTrial) -> str:
    """A name for the training that a trial goes on with, to keep its checkpoint under.

    Trials of one configuration at rising levels share it. Each evaluation for the certificate has
    one of its own, since it has to begin anew, with a new seed; so has each evaluation of
    `certify`.

    Parameters
    ----------
    trial
        A trial of a study whose sampler chooses the levels, after its first suggestion.

    Raises
    ------
    ValueError
        If the trial is not of such a study, or nothing was suggested yet.
    """
    tag = trial.user_attrs.get(ARM_KEY)
    if tag is None:
        raise ValueError(
            f"trial {trial.number} belongs to no configuration of a race: call this after the "
            f"first trial.suggest_*, in a study with a sampler such as RaceSampler."
        )
    if RECORD in tag:
        return f"certificate-{zlib.crc32(tag[RECORD].encode()):08x}-replicate-{trial.number}"
    replicate = f"-replicate-{trial.number}" if "shortlist" in tag else ""
    return f"configuration-{tag['arm']}{replicate}"
