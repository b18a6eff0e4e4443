"""Which policy for which problem and which options of a user, and why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from mfhpo._validation import check_choice, check_instance, check_name, shown
from mfhpo.identification.block_elimination import BlockElimination
from mfhpo.identification.elimination import IISE
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, SubGaussian
from mfhpo.problem import Policy, Problem
from mfhpo.racing.options import Aim
from mfhpo.regret import MFUCB, MFElimination

# For users whose objective is minimised while the reward per pull is maximised.
LOSSES_ARE_MAXIMISED = (
    "the reward per pull is maximised, and {} is minimised: as many trials are made as "
    "the budget allows, each a loss if values are positive. That is right if only the comparison "
    "with the best arm counts; else maximise a reward, or find the best arm instead."
)

# Evaluations of the winner at the target, where the user does not say how many.
_MEASURE = 10

# Aim -> options that have no part in it, and why.
_NO_WINNER = dict.fromkeys(("measure", "baseline"), "there is no winner to evaluate or compare")
_NO_PART: dict[str, dict[str, str]] = {
    "reward per cost": {"epsilon": "no arms are told apart to a tolerance", **_NO_WINNER},
    "reward per pull": {"bias": "arms are compared at the target only", **_NO_WINNER},
}


@dataclass(frozen=True)
class PolicyChoice:
    """A policy for a problem.

    Parameters
    ----------
    policy
        Its class.
    reason
        Why this one.
    """

    policy: type[Policy]
    reason: str

    def make(self, problem: Problem, **options: Any) -> Policy:
        """Make the policy; TypeError where its class has no such option."""
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        make: Callable[..., Policy] = self.policy
        return make(problem, **options)


def recommend_policy(problem: Problem, aim: Aim = "best arm") -> PolicyChoice:
    """Choose the policy that is known to be cheapest for what is known.

    Parameters
    ----------
    problem
        Arms, costs, bias and noise, as far as they are known.
    aim
        "best arm": the best arm, or one within epsilon of it, with a certificate. "reward per
        cost": a play earns its cost times the arm's target mean (Kandasamy et al. 2016, Eq. 1).
        "reward per pull": a play earns that mean, whatever it costs (Wang et al. 2023, Eq. 9).

    Examples
    --------
    >>> from mfhpo import Bias, SubGaussian
    >>> problem = Problem(8, costs=(1, 10), bias=Bias.max(0.1, 0.0), noise=SubGaussian(0.1))
    >>> recommend_policy(problem).policy.__name__
    'MFTopTwo'
    """
    check_instance("problem", problem, Problem, "a mfhpo.Problem")
    check_choice("aim", aim, get_args(Aim))
    if aim == "reward per pull":
        return PolicyChoice(
            MFElimination,
            "every play earns the same whatever it costs, so that it pays to compare arms at the "
            "target fidelity first and then to play the best of them at the cheapest",
        )
    if aim == "reward per cost":
        if problem.bias is not None and problem.bias.kind != "max":
            raise ValueError(
                f"bias={problem.bias!r}: aim='reward per cost' needs bounds on every arm's own "
                f"bias; declare Bias.max(...), or take aim='reward per pull', which needs none."
            )
        return PolicyChoice(
            MFUCB,
            "plays earn in proportion to their cost, so that arms are dropped at the cheapest "
            "fidelity that can tell them from the best, while the best are played on",
        )
    return _for_the_best_arm(problem)


def _for_the_best_arm(problem: Problem) -> PolicyChoice:
    if isinstance(problem.noise, (SubGaussian, EstimatedNoise)):
        return PolicyChoice(
            MFTopTwo,
            "likelihood ratios of pairs of arms need the fewest pulls where the noise's scale is "
            "declared, or nothing is known about it",
        )
    spread = (
        "no scale of the noise is declared, and confidence bounds see how little each arm's values "
        "spread"
    )
    if problem.bias is not None and problem.bias.kind == "max":
        return PolicyChoice(MFLUCB, f"{spread}; with bounds on every arm's own bias LUCB uses them")
    return PolicyChoice(
        IISE, f"{spread}; IISE takes order bounds, and estimates them where none are given"
    )


# The options that have a part in blocks; the others declare single evaluations, or choose levels.
_IN_BLOCKS = ("delta", "epsilon", "budget", "measure", "max_failures", "seed")


def check_blocks(replicate: str, fidelity: str | None, given: Mapping[str, Any]) -> None:
    """Raise ValueError where one of a policy's options that a user gave has no part in blocks."""
    check_name("replicate", replicate, "the name of a parameter or None")
    if replicate == fidelity:
        raise ValueError(
            f"replicate={shown(replicate)} is the fidelity; name the parameter that sets the "
            f"split or the seed, or leave it out."
        )
    if given.get("aim", "best arm") != "best arm":
        raise ValueError(
            f"replicate={shown(replicate)} has no part in aim={given['aim']!r}; leave it out."
        )
    for name in given.keys() - {*_IN_BLOCKS, "aim", "replicate"}:
        is_bounded = name == "sigma" and isinstance(given[name], Bounded)
        hint = ", or declare Bounded(low, high)" if name == "sigma" else ""
        if given[name] is not None and not is_bounded:
            raise ValueError(
                f"{name}={shown(given[name])} has no part in a race with "
                f"replicate={shown(replicate)}, which compares configurations at the target by "
                f"their differences in the same blocks; leave one of them out{hint}."
            )


def choose_blocks() -> PolicyChoice:
    """Return the policy for evaluations in blocks, and why."""
    return PolicyChoice(
        BlockElimination,
        "evaluations with the same replicate are compared with each other, so that what they share "
        "is no noise",
    )


def make_block_elimination(problem: Problem, options: Mapping[str, Any]) -> Policy:
    """Make the policy for evaluations in blocks from any race's options."""
    rest = {name: options[name] for name in _IN_BLOCKS if name in options}
    if rest.get("measure") is None:
        rest["measure"] = _MEASURE
    return BlockElimination(problem, **rest)


def make_best_policy(problem: Problem, *, aim: Aim, **options: Any) -> Policy:
    """Make the policy of `ChoiceOptions` that suits the problem."""
    choice = recommend_policy(problem, aim)
    if aim != "best arm":
        del options["estimated_bias"]
    elif options["measure"] is None:
        options["measure"] = _MEASURE
    for name in _NO_PART.get(aim, {}):
        options.pop(name, None)
    return choice.make(problem, **options)


def check_parts(options: Mapping[str, Any]) -> None:
    """Raise ValueError where one of a user's `ChoiceOptions` has no part in the aim."""
    aim = options.get("aim", "best arm")
    for name, why in _NO_PART.get(aim, {}).items():
        if options.get(name) is not None:
            raise ValueError(
                f"{name}={shown(options[name])} has no part in aim={aim!r}: {why}; leave it out."
            )
