"""`mfhpo plan`: what a race will cost, and whether its cheap levels are worth having."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from mfhpo import (
    Bias,
    Observation,
    Policy,
    Problem,
    Recommendation,
    SubGaussian,
    predict_cost,
    recommend_policy,
)
from mfhpo_optuna.command_line.output import AsJson, facts_table, fail, print_json

# Races that are simulated, and pulls of each: a few seconds of computing.
_RACES, _MOST_PULLS = 3, 1_500


def plan(
    arms: Annotated[int, typer.Option(help="Number of configurations.")],
    levels: Annotated[
        str,
        typer.Option(
            help="Levels of the fidelity, the target last, such as 3,9,27,81. An evaluation costs "
            "as much as its level."
        ),
    ],
    sigma: Annotated[float, typer.Option(help="Standard deviation of an evaluation's noise.")],
    gap: Annotated[float, typer.Option(help="By how much the best one is better than the others.")],
    bias: Annotated[
        str | None,
        typer.Option(
            help="How far a mean at each level may be from that at the target; the last one is 0.",
            show_default="not known",
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Tolerance.")] = 0.0,
    delta: Annotated[float, typer.Option(help="Probability of a wrong certificate.")] = 0.05,
    as_json: AsJson = False,
) -> None:
    """Predict what a certificate costs, before anything is spent.

    It also says whether levels below the target are worth having, and which policy suits.
    """
    values = _numbers("--levels", levels)
    bounds = None if bias is None else _numbers("--bias", bias)
    if bounds is not None and len(bounds) != len(values):
        fail(f"--bias must be {len(values)} numbers, one for each level, got {len(bounds)}.")
    if list(values) != sorted(set(values)) or not all(0.0 < value < math.inf for value in values):
        fail(
            f"--levels must be positive and finite and increase, and the target be the last one, "
            f"got {levels!r}."
        )
    if arms < 2:
        fail(f"--arms must be at least 2, got {arms}.")
    for option, number in {"--gap": gap, "--sigma": sigma}.items():
        if not 0.0 < number < math.inf:
            fail(f"{option} must be positive, got {number!r}.")
    try:
        found = _make_plan(arms, values, bounds, sigma, gap, delta=delta, epsilon=epsilon)
    except ValueError as error:
        fail(str(error))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _make_plan(
    arms: int,
    levels: Sequence[float],
    bias: Sequence[float] | None,
    sigma: float,
    gap: float,
    **claim: float,
) -> dict[str, Any]:
    """Predict a race; without bounds on the bias, one that evaluates at the target alone.

    `expected`, `guaranteed` and `target_alone` are for `mfhpo.IISE`, which mostly needs more than
    the policy that suits; what that one paid in simulated races without bias is in `simulated`.
    """
    noise = SubGaussian(sigma)
    known, bounds = ((levels[-1],), (0.0,)) if bias is None else (levels, bias)
    evidence = Problem(arms, known, bias=Bias.max(*bounds), noise=noise)
    prediction = predict_cost(evidence, gaps=[gap] * (arms - 1), **claim)
    problem = Problem(arms, levels, noise=noise) if bias is None else evidence
    choice = recommend_policy(problem)
    simulated = [
        _simulated(choice.make(problem, **claim), levels, sigma, gap, seed)
        for seed in range(_RACES)
    ]
    is_cheap = len(levels) > 1 and bias is not None
    return {
        "policy": choice.policy.__name__,
        "reason": choice.reason,
        "simulated": [answer.cost for answer in simulated],
        "unfinished": sum(not answer.certified for answer in simulated),
        "expected": prediction.expected,
        "lower_bound": prediction.lower_bound,
        "guaranteed": prediction.guaranteed,
        "target_alone": prediction.top_fidelity_only,
        "target": levels[-1],
        "worth_having": prediction.expected < prediction.top_fidelity_only if is_cheap else None,
    }


def _simulated(
    policy: Policy, levels: Sequence[float], sigma: float, gap: float, seed: int
) -> Recommendation:
    """Return the answer where all levels are unbiased and one arm is better than the others."""
    rng, told = np.random.default_rng(seed), 0
    while not policy.finished and told < _MOST_PULLS:
        [pull] = policy.ask()
        value = (0.0 if pull.arm else gap) + sigma * rng.standard_normal()
        policy.tell(pull, Observation(value, levels[pull.fidelity]))
        told += 1
    return policy.recommend()


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        fail(f"{option} must be numbers with commas between them, got {text!r}.")


def _print(found: dict[str, Any]) -> None:
    console = Console(highlight=False)

    def amount(cost: float) -> str:
        return f"{cost:,.4g} ({cost / found['target']:,.4g} full evaluations)"

    costs = found["simulated"]
    more = "more than " if found["unfinished"] else ""
    races = f"mean of {len(costs)} simulated races without bias"
    mean = f"{more}{amount(sum(costs) / len(costs))}"
    rows = [
        ("policy", f"{found['policy']}: {found['reason']}"),
        ("expected cost", f"{mean}: {races}, {min(costs):,.4g} to {max(costs):,.4g}"),
        ("by another policy, IISE", amount(found["expected"])),
        ("by IISE at the target alone", amount(found["target_alone"])),
        ("IISE surely needs no more", amount(found["guaranteed"])),
        ("no method can do with less", amount(found["lower_bound"])),
    ]
    console.print(facts_table(rows))
    console.print(_advice(found))


def _advice(found: dict[str, Any]) -> str:
    if found["worth_having"] is None:
        return (
            "Only values at the target are evidence. With --bias, it is said whether levels below "
            "it are worth having."
        )
    if found["worth_having"]:
        saved = 1.0 - found["expected"] / found["target_alone"]
        return (
            f"The levels are worth having: they save {saved:.0%} of the cost at the target alone."
        )
    return "The levels are not worth having: the target alone costs less. Leave them out."
