"""Samplers that find the best configuration and certify it; `MFSampler` chooses among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import optuna

from mfhpo import IISE
from mfhpo.certification.choice import (
    PolicyChoice,
    check_parts,
    make_best_policy,
    make_elimination,
    make_lucb,
)
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import (
    BlockOptions,
    ChoiceOptions,
    IISEOptions,
    MFGradOptions,
    MFLUCBOptions,
    MFTopTwoOptions,
    runs,
)
from mfhpo_optuna.kinds.fidelity import RaceKind
from mfhpo_optuna.samplers.options import SamplerOptions, race
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.arms import ArmsLike
from mfhpo_optuna.study.study_experiment import StudyExperiment

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _IISE(IISEOptions, BlockOptions, SamplerOptions):
    pass


class _MFTopTwo(MFTopTwoOptions, BlockOptions, SamplerOptions):
    pass


class _MFGrad(MFGradOptions, BlockOptions, SamplerOptions):
    pass


class _MFLUCB(MFLUCBOptions, BlockOptions, SamplerOptions):
    pass


@runs(IISE, _IISE, epsilon=None, measure=10)
class IISESampler(StudySampler):
    """Finds the best of a set of configurations and certifies it, by elimination.

    Every trial is one noisy evaluation of one configuration (arm) at one level of the fidelity.
    Configurations that cannot be the best any more are not evaluated again. The study stops by
    itself when one is left, or when the leader is within `epsilon` of all others.

    With probability at least 1 - `delta`, the certified configuration is at most `epsilon` worse
    than the best arm, provided that what was declared is true. Noise that was not declared is
    estimated, and the certificate says so. Without bounds on the bias, only values at the target
    are evidence. A `budget` that does not pay for comparing all configurations there makes the race
    a search (see `estimated_bias`): cheap levels choose the finalists, and the certificate is about
    them alone. The answer is a `SearchRecommendation` then. Draw a new split or seed in every
    evaluation: with a fixed one, the certificate is about that one alone.

    Parameters
    ----------
    fidelity
        The parameter that the sampler is to choose: its name, or a `Fidelity` that also declares
        levels, costs or bias. The objective asks for it with an ordinary ``trial.suggest_*``.
    arms
        The configurations to compare: how many to draw from what the objective suggests; or a list
        of parameter dictionaries; or ``{name: distribution}`` to draw 32 from (all of them, if
        there are no more; see `draw_arms` for another number).
    **options
        See `mfhpo.racing.options.IISEOptions`, `mfhpo.racing.options.BlockOptions` and
        `mfhpo_optuna.samplers.options.SamplerOptions`.

    Raises
    ------
    ValueError, TypeError
        For arguments out of range or of another kind, when the sampler is made or, for what depends
        on the objective's distributions, in the first trial. A multi-objective study raises in its
        first suggestion.

    Notes
    -----
    Several workers, threads or processes, may run one study. A study in a database goes on where
    it stopped: run the same code again. Only what an `arm_sampler` draws may then differ.

    Values count in the order in which their trials began. If nothing is left to evaluate until a
    trial under way ends, workers wait for it until its lease is over, and end their own trials as
    pruned. Then the study stops without a certificate, and goes on when it is run again.

    An exception ends ``optimize`` unless it is caught: ``study.optimize(objective,
    catch=(Exception,))``. Such a trial, or one that is interrupted, counts as failed. Nothing is
    certified if the leader leaves the race because its trials fail.

    **The best trial.** At the end the sampler adds one trial: the answer, which
    ``study.best_trial`` shows. Its value is the certificate's mean if it is certified, and else the
    pessimistic end of its interval. ``mfhpo:certificate`` among its user attributes has the rest.
    Single evaluations are marked as infeasible, so that none, however lucky, is the best trial.

    From the first value at the target on, there are answers so far as well, for studies that are
    stopped or killed. They are not certified and promise the pessimistic end of the interval at
    that time; while that is infinite, the one of the average of all values at the target. An answer
    that promises less than an earlier one has the next number beyond the earlier value.

    Under ``study.ask`` and ``study.tell`` nothing stops by itself: ask until
    ``sampler.recommendation(study).finished``.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> rng = np.random.default_rng(0)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 27)
    ...     return x**2 + 0.2 / epochs + 0.05 * rng.normal()
    >>> sampler = IISESampler("epochs", arms=8, epsilon=0.05, seed=0)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective)
    >>> sampler.recommendation(study).certified, abs(study.best_params["x"]) < 0.3
    (True, True)
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_IISE]
    ) -> None:
        kind, host = race(self, fidelity, arms, options, make_elimination)
        super().__init__(kind, {"fidelity": fidelity, "arms": arms, **options}, **host)


@runs(MFTopTwo, _MFTopTwo, epsilon=None, measure=10)
class MFTopTwoSampler(StudySampler):
    """Finds and certifies the best configuration by pulling the leader and its nearest rival.

    When to use it: for a certificate. All levels of two configurations are weighed together, and
    cost goes where the decision is open, so that it usually certifies sooner than `IISESampler`,
    which evaluates all that are left equally often. Use `IISESampler` for many workers, which need
    no single leader to gather around, or to repeat published results.

    Arguments, guarantee, trials, workers, resuming and errors are as described for `IISESampler`;
    its further options are `mfhpo.racing.options.MFTopTwoOptions`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFTopTwo]
    ) -> None:
        kind, host = race(self, fidelity, arms, options)
        super().__init__(kind, {"fidelity": fidelity, "arms": arms, **options}, **host)


@runs(MFGrad, _MFGrad, epsilon=None, measure=10)
class MFGradSampler(StudySampler):
    """Finds and certifies the best configuration along the gradient of what a certificate needs.

    When to use it: for a certificate at a very small `delta` and few configurations. It learns the
    best split of the cost among all pairs of configuration and level, which is asymptotically
    optimal. It begins with one trial of every pair of those configurations that are left, and a
    step takes more computing than one of `MFTopTwoSampler`, which is the better choice elsewhere.

    Arguments, guarantee, trials, workers, resuming and errors are as described for `IISESampler`,
    but with ``stop="published"`` delta is not proven. Its further options are
    `mfhpo.racing.options.MFGradOptions`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFGrad]
    ) -> None:
        kind, host = race(self, fidelity, arms, options)
        super().__init__(kind, {"fidelity": fidelity, "arms": arms, **options}, **host)


@runs(MFLUCB, _MFLUCB, epsilon=None, measure=10)
class MFLUCBSampler(StudySampler):
    """Finds and certifies the best configuration by telling the two leading ones apart.

    When to use it: for a certificate with confidence intervals that can be read off each
    configuration, or to repeat published results. If the two best means are roughly known
    beforehand, ``explore="A"`` or "B" picks the levels that pay. Else `MFTopTwoSampler` usually
    needs less.

    Arguments, guarantee, trials, workers, resuming and errors are as described for `IISESampler`.
    Its further options are `mfhpo.racing.options.MFLUCBOptions`. What is said about the two best
    means only chooses levels: if it is wrong the race costs more, and the certificate is as good.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.

    Raises
    ------
    ValueError, TypeError
        As `IISESampler` does; for bias bounds of kind "order"; for a bound on the means that has no
        part in `explore`; and, once the study's direction is known, if `second_no_worse_than` is
        not worse than `best_no_better_than`.

    Examples
    --------
    No loss is below 0, and a second arm below 0.3 is sure to be among these. After 9 epochs, losses
    are at most 0.02 above those after 27:

    >>> from mfhpo_optuna import Fidelity, MFLUCBSampler
    >>> sampler = MFLUCBSampler(
    ...     Fidelity("epochs", levels=[9, 27], bias=[0.02, 0.0]), arms=8, explore="A",
    ...     best_no_better_than=0.0, second_no_worse_than=0.3, epsilon=0.05, seed=0,
    ... )
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFLUCB]
    ) -> None:
        kind, host = race(self, fidelity, arms, options, make_lucb)
        super().__init__(kind, {"fidelity": fidelity, "arms": arms, **options}, **host)


class _Choice(ChoiceOptions, BlockOptions, SamplerOptions):
    pass


@runs(MFTopTwo, _Choice, aim="best arm", epsilon=None, measure=None)
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
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_Choice]
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
        n_arms, levels = len(known.experiment.runner.configurations), known.trials.levels
        return kind.declared.choice(n_arms, levels, known.sign, searches=known.searches)

    def _announcement(self, known: StudyExperiment, cheap: str) -> str:
        choice = self._choice_for(known)
        chosen = f"{choice.policy.__name__} is chosen: {choice.reason.rstrip('.')}"
        return chosen if cheap in ("", choice.reason) else f"{chosen}; {cheap}"
