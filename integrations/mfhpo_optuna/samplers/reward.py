"""Samplers that maximise what the trials themselves earn, and certify nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.options import MFEliminationOptions, MFUCBOptions, runs
from mfhpo.regret import MFUCB, MFElimination
from mfhpo_optuna.samplers.options import SamplerOptions, race
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.arms import ArmsLike

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _MFUCB(MFUCBOptions, SamplerOptions):
    pass


class _MFElimination(MFEliminationOptions, SamplerOptions):
    pass


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
    for a value. It is added once something is known about the target, and again now and then: if
    another arm leads, or the same one is surer to be good. Until the first evaluation at the
    target, ``study.best_value`` and ``study.best_trial`` raise ValueError ("No feasible trials"):
    in a callback, ask ``sampler.recommendation(study)``, or catch it. Arguments, trials, workers,
    resuming and answers that promise less are as described for `IISESampler`; its further options
    are `mfhpo.racing.options.MFUCBOptions`.

    Parameters
    ----------
    fidelity, arms
        See `IISESampler`.

    Raises
    ------
    ValueError, TypeError
        For bias bounds of kind "order", and as `IISESampler` does.

    Examples
    --------
    >>> from mfhpo_optuna import MFUCBSampler
    >>> prices = [{"price": 3}, {"price": 4}, {"price": 5}]
    >>> sampler = MFUCBSampler("visitors", prices, bias=[0, 0, 0], budget=3000)
    """

    def __init__(
        self, fidelity: str | Fidelity, arms: ArmsLike = 32, **options: Unpack[_MFUCB]
    ) -> None:
        kind, host = race(self, fidelity, arms, options)
        super().__init__(kind, {"fidelity": fidelity, "arms": arms, **options}, **host)


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
        kind, host = race(self, fidelity, arms, options)
        super().__init__(kind, {"fidelity": fidelity, "arms": arms, **options}, **host)
