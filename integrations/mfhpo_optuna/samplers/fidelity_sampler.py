"""The base of all samplers over a fidelity, and of those whose problem is declared."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import MedianPruner, NopPruner
from optuna.trial import FrozenTrial, TrialState

from mfhpo import Policy, Problem
from mfhpo.certification.certification import MakeCertifier
from mfhpo.certification.choice import LOSSES_ARE_MAXIMISED, check_blocks, make_block_elimination
from mfhpo.knowledge.bias import Kind
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import Declaration, as_fidelity
from mfhpo.racing.options import with_defaults
from mfhpo.regret import MFElimination
from mfhpo.search import BudgetedSearch
from mfhpo.search.declared import (
    certifier_of,
    cheap_levels_in_words,
    makes_shortlist,
    shortlisting_race,
)
from mfhpo_optuna.recommendations import StudyRecommendation
from mfhpo_optuna.samplers.answer import Answer
from mfhpo_optuna.samplers.options import SamplerOptions
from mfhpo_optuna.samplers.policy_sampler import PolicySampler
from mfhpo_optuna.samplers.study_sampler import stop
from mfhpo_optuna.study.arms import Arms, ArmsLike
from mfhpo_optuna.study.attributes import (
    CERTIFICATE_KEY,
    FIDELITY_KEY,
    SECONDS_KEY,
    pull_note,
    write_attribute,
)
from mfhpo_optuna.study.fidelity_race import FidelityRace
from mfhpo_optuna.study.levels import Replicates, levels_in
from mfhpo_optuna.study.open_arms import OpenArms
from mfhpo_optuna.study.search_study import SearchStudy

if TYPE_CHECKING:
    from typing_extensions import Unpack

_logger = optuna.logging.get_logger(f"optuna.{__name__}")


class FidelitySampler(PolicySampler[FidelityRace]):
    """Runs a policy that chooses arms and levels of a fidelity."""

    def __init__(
        self,
        fidelity: str | Fidelity,
        arms: ArmsLike,
        replicate: str | None = None,
        **options: Unpack[SamplerOptions],
    ) -> None:
        self._fidelity = as_fidelity(fidelity)
        self._replicate = replicate
        owned = [self._fidelity.name, *([] if replicate is None else [replicate])]
        super().__init__(owned=owned, arms=arms, **options)

    # What users call.

    def recommendation(self, study: optuna.Study) -> StudyRecommendation:
        """Return the best answer so far, with its certificate once the race has ended.

        The study was run with this sampler, or with one made with the same arguments. Raises
        ValueError if no trial has told the levels of the fidelity yet.
        """
        with self._lock:
            race = self._read(study)
            if race.policy is None:
                raise ValueError(
                    f"study {study.study_name!r} has no finished trial that asked for the fidelity "
                    f"{self._fidelity.name!r}, so there is nothing to recommend yet."
                )
            return _with_findings(race, _recommendation(race))

    def searches(self, study: optuna.Study) -> bool:
        """Return whether cheap levels choose which configurations of a study are compared."""
        if self.objection_to(study):
            return False
        with self._lock:
            return isinstance(self._read(study), SearchStudy)

    # What Optuna calls.

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Choose the pull that the trial evaluates, and note it where other workers see it."""
        if type(study.pruner) is MedianPruner:
            # What a study has if nobody asked for a pruner; what it ends gives a race no value.
            study.pruner = NopPruner()
            _logger.info(
                f"study {study.study_name!r} goes on without Optuna's MedianPruner: its sampler "
                f"decides which trials go up to the target."
            )
        super().before_trial(study, trial)
        if self.objection_to(study):
            return
        with self._lock:
            race = self._of(study)
            if isinstance(race, SearchStudy) and trial.number in race.over:
                self._end(study, race, trial)

    def _value_for(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        race = self._of(study)
        pull = race.pull(trial.number)
        if pull is not None and name == self._fidelity.name:
            return race.level_of(trial.number, distribution)
        if pull is not None and name == self._replicate:
            if pull.block is None:  # it began when the study had no replicate, and does not count
                return self._anything(trial, name, distribution)
            return race.replicate_of(trial.number, distribution)
        return super()._value_for(study, trial, name, distribution)

    # Helpers.

    def _replicates_of(self, seed: int) -> Replicates | None:
        return None if self._replicate is None else Replicates(self._replicate, seed)

    def _notes(self) -> dict[str, Any]:
        return {**super()._notes(), FIDELITY_KEY: self._fidelity.name}

    def _seconds_of(
        self, study: optuna.Study, race: FidelityRace, trial: FrozenTrial, state: TrialState
    ) -> float | None:
        seconds = race.under_way.seconds_since_beginning(trial)
        # Of a failure, too: without it nobody could tell it from the trial of a worker that died.
        if seconds is not None and (race.in_seconds or state == TrialState.FAIL):
            write_attribute(study, trial, SECONDS_KEY, seconds)
        return seconds

    def _check(self, study: optuna.Study, race: FidelityRace) -> None:
        race.check_fidelity_is_free()
        if race.hopeless and stop(study):
            warnings.warn(
                f"the study is stopped: every trial failed before it asked for the fidelity "
                f"{self._fidelity.name!r}; mend the objective, and run it again.",
                stacklevel=5,
            )

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
        elif not race.goes_on:
            # Else whoever ends last concludes; processes elsewhere may be lost, or conclude anew.
            self._conclude(study, race, trial)

    def _answer(self, race: FidelityRace) -> Answer:
        answer = _recommendation(race)
        distributions = {} if answer.arm is None else dict(race.arms.distributions(answer.arm))
        params = dict(answer.params)
        if race.fidelity_distribution is not None:
            distributions[race.fidelity.name] = race.fidelity_distribution
            params[race.fidelity.name] = answer.level
        value = answer.mean
        if not answer.certified and race.policy is not None:
            _, _, (low, _), _ = race.policy.leader()
            value = race.sign * low
        if isinstance(race, SearchStudy) and not math.isfinite(value):
            value = answer.mean
        return Answer(
            arm=answer.arm,
            mean=answer.mean,
            value=value,
            params=params,
            distributions=distributions,
            attributes={CERTIFICATE_KEY: answer.to_dict()},
            reason=answer.reason,
        )

    def _is_repeat(self, now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
        if (earlier["arm"], earlier["certified"]) != (now["arm"], now["certified"]):
            return False
        if now["certified"]:
            # Workers that end after the certificate change the mean a little, but not the claim.
            return bool(earlier["delta"] <= now["delta"] and earlier["epsilon"] <= now["epsilon"])
        return bool(earlier["trials"] == now["trials"])

    def _values_of_arms(self, race: FidelityRace) -> list[tuple[int, float]]:
        policy = race.policy
        if policy is None:
            return []
        if isinstance(policy, BudgetedSearch):
            search = policy.search
            return [
                (arm, race.sign * search.mean(arm, search.target)) for arm in search.finished_arms()
            ]
        seen = [
            [arm for arm in range(len(race.arms)) if policy.summary(arm, fidelity)[0]]
            for fidelity in range(len(race.levels))
        ]
        fidelity = max(range(len(seen)), key=lambda m: (len(seen[m]), m))
        return [(arm, race.sign * policy.summary(arm, fidelity)[1]) for arm in seen[fidelity]]


class DeclaredSampler(FidelitySampler):
    """Runs the policy that `mfhpo.racing.options.runs` names.

    Values are maximised inside. What is declared about them has the unit and the direction of the
    objective, and is mirrored for a study that minimises. Options are tried at once, so that
    wrong ones raise here and not in the first trial.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    """

    _policy_class: Callable[..., Policy]

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike, options: Mapping[str, Any]
    ) -> None:
        own = with_defaults(type(self), options)
        host = {name: own.pop(name) for name in SamplerOptions.__annotations__}
        replicate = own.pop("replicate", None)
        if replicate is not None:
            declared = as_fidelity(fidelity)
            given = {name: options[name] for name in options.keys() - host.keys()}
            check_blocks(replicate, declared.name, {"bias": declared.bias} | given)
        super().__init__(fidelity, arms, replicate, **host)
        self._arguments = {"fidelity": fidelity, "arms": arms, **options}
        kind: Kind = "order" if own.get("variant") == "order" else "max"
        self._declaration = Declaration.of(
            self._fidelity, own.pop("sigma"), own.pop("bias", None), kind
        )
        self._options = own
        self._warned_of_losses = False
        levels = self._fidelity.levels or ()
        self._declaration.rehearse(self._make, own, levels, (1.0, -1.0))
        objection = self._declaration.objection_to(own["budget"], levels)
        if objection is not None:
            warnings.warn(objection, stacklevel=3)

    def _policy_for(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        """Make the policy; `sign` is -1 for a study that minimises, whose values are mirrored."""
        return self._policy_class(problem, **options)

    def _make(self, problem: Problem, sign: float, options: Mapping[str, Any]) -> Policy:
        if self._replicate is None:
            return self._policy_for(problem, sign, options)
        return make_block_elimination(problem, options)

    def _new(self, study: optuna.Study) -> FidelityRace:
        seed = self._seed_of(study)
        arms = self._new_arms(study)

        def make_policy(n_arms: int, levels: Sequence[Any], sign: float) -> Policy:
            if self._shortlists(n_arms, levels):
                return self._search(arms, levels, seed, sign)
            problem = self._declaration.problem(n_arms, levels, sign)
            policy = self._make(problem, sign, self._options | {"seed": seed})
            if sign < 0.0 and isinstance(policy, MFElimination) and not self._warned_of_losses:
                self._warned_of_losses = True
                warnings.warn(LOSSES_ARE_MAXIMISED.format("the objective"), stacklevel=4)
            return policy

        others = self._lease, self._replicates_of(seed), self._settings.digest
        if self._shortlists(len(arms), self._levels_of(study)):
            arms = OpenArms(self._owned, seed, self._arms)
            search = SearchStudy(study, arms, self._fidelity, make_policy, *others)
            search.arms_option = "arms"
            return search
        return FidelityRace(study, arms, self._fidelity, make_policy, *others)

    def _shortlists(self, n_arms: int, levels: Sequence[Any]) -> bool:
        """Return whether cheap levels choose which arms are compared; False while none is known."""
        if not levels or self._arm_sampler is not None:
            return False
        return makes_shortlist(self._declared, n_arms, self._fidelity.costs_of(levels))

    def _levels_of(self, study: optuna.Study) -> Sequence[Any]:
        """Return the declared levels, or those that a trial asked for; none while unknown."""
        if self._fidelity.levels is not None:
            return tuple(self._fidelity.levels)
        for trial in study.get_trials(deepcopy=False):
            if self._fidelity.name in trial.distributions and pull_note(trial):
                return levels_in(self._fidelity, trial.distributions[self._fidelity.name])
        return ()

    def _search(self, arms: Arms, levels: Sequence[Any], seed: int, sign: float) -> BudgetedSearch:
        given = [arms.params(arm) for arm in range(len(arms))] if arms.declared else len(arms)
        return shortlisting_race(
            self._declaration,
            self._options,
            given,
            levels,
            seed=seed,
            sign=sign,
            params=arms.params,
            replicate=self._replicate,
            certifier=self._certifier(sign),
        )

    def _certifier(self, sign: float) -> MakeCertifier | None:
        """Return what makes the policy that compares finalists; None for a few planned looks."""
        return certifier_of(self._policy_for, self._options, sign)

    def _read(self, study: optuna.Study, ending: int | None = None) -> FidelityRace:
        race = super()._read(study, ending)
        if isinstance(race.policy, BudgetedSearch) and not isinstance(race, SearchStudy):
            # The first trial has told the levels, and with them that this is a search.
            anew = self._anew(study)
            anew.take_over(race)
            anew.read(study, ending)
            race = anew
        if race.policy is not None and not race.announced:
            race.announced = True
            words = self._announcement(race)
            if words:
                _logger.info("study %r: %s.", study.study_name, words)
        return race

    def _announcement(self, race: FidelityRace) -> str:
        """Return what the log is to say once about how the study is run; empty for nothing."""
        if self._arm_sampler is not None:
            return ""
        looks = self._replicate is not None or self._certifier(race.sign) is None
        certifier = "" if looks else self._policy_class.__name__
        costs = self._fidelity.costs_of(race.levels)
        return cheap_levels_in_words(self._declared, len(race.arms), costs, certifier)

    @property
    def _declared(self) -> dict[str, Any]:
        return {**self._options, "bias": self._declaration.bias, "sigma": self._declaration.noise}


def _recommendation(race: FidelityRace) -> StudyRecommendation:
    assert race.policy is not None
    answer = race.policy.recommend()
    answer = replace(answer, notices=(*answer.notices, *race.notices))
    params = {} if answer.arm is None else dict(race.arms.params(answer.arm))
    level = race.levels[answer.fidelity] if race.owns_fidelity else None
    return StudyRecommendation.of(answer, race.sign, params, level, race.certifies)


def _with_findings(race: FidelityRace, found: StudyRecommendation) -> StudyRecommendation:
    if not isinstance(race.policy, BudgetedSearch):
        return found
    findings = race.policy.findings()
    certificate = findings["certificate"]
    if certificate is not None:
        findings["certificate"] = replace(
            certificate, notices=(*certificate.notices, *race.notices)
        )
    return replace(found, searched=True, **findings)
