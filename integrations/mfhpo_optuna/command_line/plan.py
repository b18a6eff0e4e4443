"""`mfhpo plan`: what a race will cost, and whether its cheap levels are worth having."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from scipy.optimize import bisect

from mfhpo import (
    Bias,
    CostPrediction,
    Observation,
    Policy,
    Problem,
    Recommendation,
    SubGaussian,
    predict_cost,
    recommend_policy,
)
from mfhpo_optuna.command_line.output import AsJson, facts_table, fail, print_json

# To how much of the gap the largest bias at which a level pays is found.
_PRECISION = 1e-3

# Of one simulated race: a few seconds of computing.
_MOST_PULLS = 1_500


@dataclass(frozen=True)
class LevelPlan:
    """A level, and what it brings to a race that has it beside the target.

    Parameters
    ----------
    evaluations
        How many the race is expected to make there, by the bias that was declared.
    saves
        Share of the target's cost that is saved if the level's bias is 0.
    pays_below
        The bias below which it saves anything; None if it never does.
    """

    level: float
    cost: float
    evaluations: float
    saves: float
    pays_below: float | None


@dataclass(frozen=True)
class Plan:
    """What is to be expected of a race; costs are in the unit of the levels.

    `simulated` are the costs of races that the policy ran on made-up values without bias, of which
    `unfinished` were cut short; `expected`, `guaranteed` and `target_alone` are predictions for
    `mfhpo.IISE`, which mostly needs more. `worth_having` says whether the levels below the target
    save IISE anything by the bias that was declared; None if there are none, or none was declared.
    """

    policy: str
    reason: str
    simulated: tuple[float, ...]
    unfinished: int
    expected: float
    lower_bound: float
    guaranteed: float
    target_alone: float
    target_cost: float
    worth_having: bool | None
    levels: tuple[LevelPlan, ...]


@dataclass(frozen=True)
class _Race:
    """What the user says about it."""

    arms: int
    levels: Sequence[float]
    costs: Sequence[float]
    sigma: float
    gap: float
    epsilon: float
    delta: float

    def problem(self, costs: Sequence[float], bias: Sequence[float] | None) -> Problem:
        """What the policy is told."""
        bounds = None if bias is None else Bias.max(*bias)
        return Problem(self.arms, costs, bias=bounds, noise=SubGaussian(self.sigma))

    def predict(self, costs: Sequence[float], bias: Sequence[float]) -> CostPrediction:
        """What IISE will pay."""
        gaps = [self.gap] * (self.arms - 1)
        problem = self.problem(costs, bias)
        return predict_cost(problem, self.delta, gaps=gaps, epsilon=self.epsilon)

    def saved(self, cost: float, bias: float) -> float:
        """Share of the target's cost that one level beside it saves."""
        prediction = self.predict((cost, self.costs[-1]), (bias, 0.0))
        return 1.0 - prediction.expected / prediction.top_fidelity_only

    def pays_below(self, cost: float) -> float | None:
        """The bias below which a level saves anything."""
        if self.saved(cost, 0.0) <= 0.0:
            return None
        # With a bias of half the gap, a level tells nobody from the best.
        reach = (self.gap + self.epsilon) / 2.0
        if self.saved(cost, reach) > 0.0:
            return reach
        found = bisect(lambda bias: self.saved(cost, bias), 0.0, reach, xtol=_PRECISION * self.gap)
        return float(found)


def plan(
    arms: Annotated[int, typer.Option(help="Number of configurations.")],
    levels: Annotated[
        str, typer.Option(help="Levels of the fidelity, the target last, such as 3,9,27,81.")
    ],
    sigma: Annotated[float, typer.Option(help="Standard deviation of an evaluation's noise.")],
    gap: Annotated[float, typer.Option(help="By how much the best one is better than the others.")],
    costs: Annotated[
        str | None,
        typer.Option(help="Cost of an evaluation at each level.", show_default="the levels"),
    ] = None,
    bias: Annotated[
        str | None,
        typer.Option(
            help="How far a mean at each level may be from that at the target; the last one is 0.",
            show_default="not known",
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Tolerance.")] = 0.0,
    delta: Annotated[float, typer.Option(help="Probability of a wrong certificate.")] = 0.05,
    races: Annotated[int, typer.Option(help="How many races to simulate.", min=0)] = 3,
    as_json: AsJson = False,
) -> None:
    """Predict what a certificate costs, before anything is spent.

    It also says whether levels below the target are worth having, and which policy suits.
    """
    values = _numbers("--levels", levels)
    prices = values if costs is None else _numbers("--costs", costs)
    bounds = None if bias is None else _numbers("--bias", bias)
    for name, numbers in {"--costs": prices, "--bias": bounds}.items():
        if numbers is not None and len(numbers) != len(values):
            fail(f"{name} must be {len(values)} numbers, one for each level, got {len(numbers)}.")
    if list(values) != sorted(set(values)) or not all(map(math.isfinite, values)):
        fail(
            f"--levels must be finite and increase, and the target be the last one, got {levels!r}."
        )
    if not all(0.0 < price < math.inf for price in prices):
        if costs is None:
            fail(f"--levels must be positive unless --costs are given, got {levels!r}.")
        fail(f"--costs must be positive and finite, got {costs!r}.")
    if arms < 2:
        fail(f"--arms must be at least 2, got {arms}.")
    if not 0.0 < gap < math.inf:
        fail(f"--gap must be positive, got {gap!r}.")
    if not 0.0 < sigma < math.inf:
        fail(f"--sigma must be positive, got {sigma!r}.")
    try:
        found = make_plan(_Race(arms, values, prices, sigma, gap, epsilon, delta), bounds, races)
    except ValueError as error:
        fail(str(error))
    if as_json:
        print_json(asdict(found))
    else:
        _print(found, bounds is not None)


def make_plan(race: _Race, bias: Sequence[float] | None, races: int) -> Plan:
    """Predict a race; without bounds on the bias, one that evaluates at the target alone."""
    costs, target = race.costs, race.costs[-1]
    if bias is None:
        prediction = race.predict((target,), (0.0,))
        evaluations = (*[0.0] * (len(costs) - 1), *prediction.pulls)
    else:
        prediction = race.predict(costs, bias)
        evaluations = prediction.pulls
    problem = race.problem(costs, bias)
    choice = recommend_policy(problem)
    simulated = [
        _simulated(race, choice.make(problem, delta=race.delta, epsilon=race.epsilon), seed)
        for seed in range(races)
    ]
    cheap = len(costs) > 1 and bias is not None
    return Plan(
        policy=choice.policy.__name__,
        reason=choice.reason,
        simulated=tuple(answer.cost for answer in simulated),
        unfinished=sum(not answer.certified for answer in simulated),
        expected=prediction.expected,
        lower_bound=prediction.lower_bound,
        guaranteed=prediction.guaranteed,
        target_alone=prediction.top_fidelity_only,
        target_cost=target,
        worth_having=prediction.expected < prediction.top_fidelity_only if cheap else None,
        levels=tuple(
            LevelPlan(level, cost, count, race.saved(cost, 0.0), race.pays_below(cost))
            if cost < target
            else LevelPlan(level, cost, count, 0.0, None)
            for level, cost, count in zip(race.levels, costs, evaluations, strict=True)
        ),
    )


def _simulated(race: _Race, policy: Policy, seed: int) -> Recommendation:
    """The policy's answer where all levels are unbiased and one arm is better than the others."""
    rng, told = np.random.default_rng(seed), 0
    while not policy.finished and told < _MOST_PULLS:
        [pull] = policy.ask()
        mean = 0.0 if pull.arm else race.gap
        cost = race.costs[pull.fidelity]
        policy.tell(pull, Observation(mean + race.sigma * rng.standard_normal(), cost))
        told += 1
    return policy.recommend()


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        fail(f"{option} must be numbers with commas between them, got {text!r}.")


def _print(found: Plan, bias_is_known: bool) -> None:
    console = Console(highlight=False)

    def amount(cost: float) -> str:
        return f"{cost:,.4g} ({cost / found.target_cost:,.4g} full evaluations)"

    rows = [("policy", f"{found.policy}: {found.reason}")]
    if found.simulated:
        least, most = min(found.simulated), max(found.simulated)
        mean = amount(sum(found.simulated) / len(found.simulated))
        more = "more than " if found.unfinished else ""
        races = f"mean of {len(found.simulated)} simulated races without bias"
        rows.append(("expected cost", f"{more}{mean}: {races}, {least:,.4g} to {most:,.4g}"))
    rows.append(("by another policy, IISE", amount(found.expected)))
    if found.worth_having is not None:
        rows.append(("by IISE at the target alone", amount(found.target_alone)))
    rows.append(("IISE surely needs no more", amount(found.guaranteed)))
    rows.append(("no method can do with less", amount(found.lower_bound)))
    console.print(facts_table(rows))
    if len(found.levels) == 1:
        return
    table = Table(
        "level", "cost", "evaluations by IISE", "saves at most", "pays if its bias is below"
    )
    for one in found.levels[:-1]:
        pays = "never" if one.pays_below is None else f"{one.pays_below:.3g}"
        saves = f"{max(0.0, one.saves):.0%}"
        count = f"{one.evaluations:,.4g}" if bias_is_known else "none"
        table.add_row(f"{one.level:g}", f"{one.cost:g}", count, saves, pays)
    last = found.levels[-1]
    table.add_row(f"{last.level:g}", f"{last.cost:g}", f"{last.evaluations:,.4g}", "", "the target")
    console.print(table)
    console.print(_advice(found))


def _advice(found: Plan) -> str:
    """Whether the levels are worth having, in a sentence or two."""
    if found.worth_having is None:
        return (
            "Nothing is said about the bias (--bias), so only values at the target are evidence. A "
            "level is worth having if, for every configuration, its mean is nearer to that at the "
            "target than the last column says."
        )
    if found.worth_having:
        saved = 1.0 - found.expected / found.target_alone
        return (
            f"The levels are worth having: they save {saved:.0%} of the cost at the target alone."
        )
    return "The levels are not worth having: the target alone costs less. Leave them out."
