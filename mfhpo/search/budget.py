"""What a race may spend, as users say it: in costs, in trials or in seconds."""

from __future__ import annotations

from mfhpo._validation import check_count, check_number
from mfhpo.search.race import BudgetUnit

__all__ = ["check_budget"]


def check_budget(
    budget: float | None, trials: int | None, seconds: float | None
) -> tuple[float | None, BudgetUnit]:
    """Check that at most one says what may be spent.

    Parameters
    ----------
    budget
        In the unit of the fidelity's costs.
    trials
        In evaluations, whatever they cost.
    seconds
        In seconds that evaluations take; what they cost is then to be measured.

    Returns
    -------
    tuple
        The number, None if there is none, and its unit, for `SearchRace`.

    Raises
    ------
    TypeError, ValueError
        If there is more than one, or trials or seconds are no positive number; `SearchRace` checks
        a budget.

    Examples
    --------
    >>> check_budget(None, 40, None)
    (40.0, 'evaluations')
    """
    all_three = {"budget": budget, "trials": trials, "seconds": seconds}
    given = {name: value for name, value in all_three.items() if value is not None}
    if len(given) > 1:
        words = " and ".join(f"{name}={value!r}" for name, value in given.items())
        both = "both" if len(given) == 2 else "all"
        raise ValueError(f"{words} {both} say what may be spent; give one.")
    if trials is not None:
        return float(check_count("trials", trials, 1)), "evaluations"
    if seconds is not None and not check_number("seconds", seconds, " or None") > 0.0:
        raise ValueError(f"seconds must be positive or None, got {seconds!r}.")
    return (budget if seconds is None else seconds), "cost"
