"""`MFSampler`: the policy that suits the problem, as an Optuna sampler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import optuna

from mfhpo.certification.choice import (
    PolicyChoice,
    check_parts,
    choose_blocks,
    make_best_policy,
    recommend_policy,
)
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import BlockOptions, ChoiceOptions, runs
from mfhpo.search import BudgetedSearch
from mfhpo_optuna.kinds.fidelity import RaceKind
from mfhpo_optuna.samplers.options import SamplerOptions, race
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.arms import ArmsLike
from mfhpo_optuna.study.study_experiment import StudyExperiment

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Options(ChoiceOptions, BlockOptions, SamplerOptions):
    pass


@runs(MFTopTwo, _Options, aim="best arm", epsilon=None, measure=None)
class MFSampler(StudySampler):
    """Chooses the policy that is known to be cheapest for the problem, and runs it.

    When to use it: always, unless a certain policy is wanted. Which one is chosen depends on the
    aim, the number of arms and levels, and what is declared. One line of Optuna's log names it, and
    `choice` tells which and why. All workers of a study choose the same, as long as the arguments
    are the same, and so does a study that is resumed.

    With a budget that does not pay for four evaluations of each configuration at the target, and
    nothing declared about the bias of cheaper levels, these choose the finalists. A few planned
    looks then compare the finalists by new evaluations (`mfhpo.search.BudgetedSearch`).

    What it guarantees: what the chosen policy does. With ``aim="best arm"`` that is what
    `IISESampler` describes. With the other aims nothing is certified; see `MFUCBSampler` and
    `MFEliminationSampler`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    **options
        See `mfhpo.racing.options.ChoiceOptions` and `mfhpo_optuna.samplers.options.SamplerOptions`.
        Without `measure`, the winner for "best arm" gets 10 evaluations.

    Raises
    ------
    ValueError, TypeError
        As `IISESampler` does, and for an option that has no part in the aim.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_Options]
    ) -> None:
        kind, host = race(self, fidelity, arms, options, make_best_policy, looks=True)
        kind.announces = self._announcement
        super().__init__(kind, {"fidelity": fidelity, "arms": arms, **options}, **host)
        check_parts(options)

    def choice(self, study: optuna.Study) -> PolicyChoice:
        """Return which policy was chosen for a study, and why.

        Raises ValueError if no trial has told the levels of the fidelity yet, so that nothing is
        chosen.
        """
        declare = "declare the levels in a Fidelity to have it chosen before the first trial."
        return self._choice_for(self._begun(study, f"no policy is chosen yet; {declare}"))

    def _choice_for(self, known: StudyExperiment) -> PolicyChoice:
        kind = self.kind
        assert isinstance(kind, RaceKind)
        if known.searches:
            return PolicyChoice(BudgetedSearch, kind.cheap_levels_in_words(known))
        if kind.replicate is not None:
            return choose_blocks()
        return recommend_policy(kind.problem(known), kind.declared.options["aim"])

    def _announcement(self, known: StudyExperiment, cheap: str) -> str:
        choice = self._choice_for(known)
        chosen = f"{choice.policy.__name__} is chosen: {choice.reason.rstrip('.')}"
        return chosen if cheap in ("", choice.reason) else f"{chosen}; {cheap}"
