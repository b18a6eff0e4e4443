"""Samplers that race configurations: to certify the best, or for what the trials earn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import optuna

from mfhpo import IISE
from mfhpo.certification.choice import PolicyChoice, check_parts, make_best_policy
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import (
    BlockOptions,
    ChoiceOptions,
    IISEOptions,
    MFEliminationOptions,
    MFGradOptions,
    MFLUCBOptions,
    MFTopTwoOptions,
    MFUCBOptions,
    runs,
)
from mfhpo.regret import MFUCB, MFElimination
from mfhpo_optuna.samplers.fidelity_kinds import RaceKind
from mfhpo_optuna.samplers.options import SamplerOptions, race
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.arms import ArmsLike

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _IISE(IISEOptions, BlockOptions, SamplerOptions): ...


class _MFTopTwo(MFTopTwoOptions, BlockOptions, SamplerOptions): ...


class _MFGrad(MFGradOptions, BlockOptions, SamplerOptions): ...


class _MFLUCB(MFLUCBOptions, BlockOptions, SamplerOptions): ...


class _Choice(ChoiceOptions, BlockOptions, SamplerOptions): ...


class _MFUCB(MFUCBOptions, SamplerOptions): ...


class _MFElimination(MFEliminationOptions, SamplerOptions): ...


@runs(IISE, _IISE, epsilon=None, measure=10)
class IISESampler(StudySampler):
    """Finds the best of a set of configurations and certifies it, by elimination.

    Every trial is one noisy evaluation of one configuration (arm) at one level of the fidelity.
    Configurations that cannot be the best any more are not evaluated again. The study stops by
    itself when one is left, or when the leader is within `epsilon` of all others.

    With probability at least 1 - `delta`, the certified configuration is at most `epsilon` worse
    than the best arm, provided that what was declared is true. Noise that was not declared is
    estimated, and the certificate says so. Without bounds on the bias, see `estimated_bias`. Draw a
    new split or seed in every evaluation, or the certificate is about the fixed one alone.

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
        on the objective's distributions or the study, in the first trial.

    Notes
    -----
    Several workers, threads or processes, may run one study. A study in a database goes on where
    it stopped: run the same code again. Values count in the order in which their trials began. If
    nothing is left to evaluate until a trial under way ends, workers wait for it until its lease is
    over. Then the study stops without a certificate, and goes on when it is run again.

    An exception ends ``optimize`` unless it is caught: ``study.optimize(objective,
    catch=(Exception,))``. Such a trial, or one that is interrupted, counts as failed.

    **The best trial.** At the end the sampler adds one trial: the answer, which
    ``study.best_trial`` shows. Its value is the certificate's mean if it is certified, and else the
    pessimistic end of its interval. ``mfhpo:certificate`` among its user attributes has the rest.
    Single evaluations are marked as infeasible, so that none, however lucky, is the best trial.
    From the first value at the target on, there are answers so far as well, which are not
    certified. One that promises less than an earlier one has the next number beyond its value.

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
        super().__init__(**race(self, fidelity, arms, options))


@runs(MFTopTwo, _MFTopTwo, epsilon=None, measure=10)
class MFTopTwoSampler(StudySampler):
    """Finds and certifies the best configuration by pulling the leader and its nearest rival.

    When to use it: for a certificate. Cost goes where the decision is open, so that it usually
    certifies sooner than `IISESampler`, which evaluates all that are left equally often. Use
    `IISESampler` for many workers, or to repeat published results.

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
        super().__init__(**race(self, fidelity, arms, options))


@runs(MFGrad, _MFGrad, epsilon=None, measure=10)
class MFGradSampler(StudySampler):
    """Finds and certifies the best configuration along the gradient of what a certificate needs.

    When to use it: for a certificate at a very small `delta` and few configurations. It learns the
    best split of the cost among all pairs of configuration and level, which is asymptotically
    optimal. A step takes more computing than one of `MFTopTwoSampler`, the better choice elsewhere.

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
        super().__init__(**race(self, fidelity, arms, options))


@runs(MFLUCB, _MFLUCB, epsilon=None, measure=10)
class MFLUCBSampler(StudySampler):
    """Finds and certifies the best configuration by telling the two leading ones apart.

    When to use it: for a certificate with confidence intervals that can be read off each
    configuration, or to repeat published results. Else `MFTopTwoSampler` usually needs less.

    Arguments, guarantee, trials, workers, resuming and errors are as described for `IISESampler`.
    Its further options are `mfhpo.racing.options.MFLUCBOptions`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.

    Raises
    ------
    ValueError, TypeError
        As `IISESampler` does, and for bias bounds of kind "order".

    Examples
    --------
    After 9 epochs, losses are at most 0.02 above those after 27:

    >>> from mfhpo_optuna import Fidelity, MFLUCBSampler
    >>> sampler = MFLUCBSampler(
    ...     Fidelity("epochs", levels=[9, 27], bias=[0.02, 0.0]), arms=8, epsilon=0.05, seed=0
    ... )
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFLUCB]
    ) -> None:
        super().__init__(**race(self, fidelity, arms, options))


@runs(MFTopTwo, _Choice, aim="best arm", epsilon=None, measure=None)
class MFSampler(StudySampler):
    """Chooses the policy that is known to be cheapest for the problem, and runs it.

    When to use it: always, unless a certain policy is wanted. Which one is chosen depends on the
    aim, the number of arms and levels, and what is declared. One line of Optuna's log names it, and
    `choice` tells which and why. All workers of a study choose the same, as long as the arguments
    are the same, and so does a study that is resumed.

    What it guarantees: with ``aim="best arm"`` what `IISESampler` describes. With the other aims
    nothing is certified; see `MFUCBSampler` and `MFEliminationSampler`.

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
        super().__init__(**race(self, fidelity, arms, options, make_best_policy))
        check_parts(options)

    def choice(self, study: optuna.Study) -> PolicyChoice:
        """Return which policy was chosen for a study, and why; ValueError before any was."""
        declare = "declare the levels in a Fidelity to have it chosen before the first trial."
        known = self._begun(study, f"no policy is chosen yet; {declare}")
        assert isinstance(self.kind, RaceKind)
        return self.kind.choice(known)


@runs(MFUCB, _MFUCB)
class MFUCBSampler(StudySampler):
    """Evaluates good configurations more and more often: for what the trials earn, per cost.

    When to use it: when the trials themselves count, not only the answer, and a dearer trial
    counts for more. Each is worth its configuration's mean at the target times its cost, such as
    the share of traffic that a variant is shown to. Bad configurations are left at cheap levels.
    To find a configuration, use `MFSampler` or `MFTopTwoSampler`: they stop, and say how sure they
    are.

    What it guarantees: nothing at a given probability about the answer, which is never certified.
    What was missed in comparison with the best arm at the target grows with the logarithm of the
    cost only, if what was declared is true. The interval of `recommendation` holds with
    probability at least 1 - `delta`. Unlike the samplers that certify, this one does not compare
    levels to find declared bounds wrong.

    Give a `budget`, or end ``optimize`` by ``n_trials`` or ``timeout``: without a budget the study
    goes on for ever. `recommendation` answers at any time. ``study.best_trial`` is the arm that is
    surest to be good, with the pessimistic end of its interval (infinite while nothing is certain)
    for a value. Until the first evaluation at the target, ``study.best_trial`` raises ValueError
    ("No feasible trials"). Arguments, trials, workers and resuming are as described for
    `IISESampler`; its further options are `mfhpo.racing.options.MFUCBOptions`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.

    Raises
    ------
    ValueError, TypeError
        For bias bounds of kind "order", and as `IISESampler` does.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFUCB]
    ) -> None:
        super().__init__(**race(self, fidelity, arms, options))


@runs(MFElimination, _MFElimination)
class MFEliminationSampler(StudySampler):
    """Compares configurations at the target, then runs the best of them where it is cheap.

    When to use it: as `MFUCBSampler`, but where each trial counts the same, whatever it costs: it
    is worth its configuration's mean at the target.

    Rewards are to be maximised. A study that minimises is taken for one that maximises the negative
    values. The arm with the smallest loss is played as often as the budget allows, at the cheapest
    level. Where every trial *is* a loss, that is the opposite of what keeps the sum of the losses
    small, and a warning says so once.

    What it guarantees: nothing at a given probability about the answer, which is never certified.
    What was missed in comparison with the best arm grows as the budget to the power 2/3 at most,
    if what was declared is true. No bias has to be known. The interval of `recommendation` holds
    with probability at least 1 - `delta`.

    When it ends, what ``study.best_trial`` is, arguments and errors are as described for
    `MFUCBSampler`; its further options are `mfhpo.racing.options.MFEliminationOptions`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFElimination]
    ) -> None:
        super().__init__(**race(self, fidelity, arms, options))
