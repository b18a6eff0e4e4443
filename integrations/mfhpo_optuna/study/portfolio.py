"""`enqueue_portfolio`: a study first tries what did well on other data sets."""

from collections.abc import Mapping, Set
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

from mfhpo._validation import check_instance, check_name, is_number, shown
from mfhpo.portfolios import portfolio
from mfhpo_optuna.study.distributions import contains, own_value, place_of, value_at


def enqueue_portfolio(
    study: optuna.Study,
    model: str,
    *,
    names: Mapping[str, str] | None = None,
    space: Mapping[str, BaseDistribution] | None = None,
) -> None:
    """Enqueue a portfolio: ordinary trials that a study begins with, whatever its sampler.

    What the study has already tried or enqueued is not enqueued again. Parameters that the
    objective does not ask for are ignored, and others are drawn by the sampler.

    Parameters
    ----------
    study
        Not yet begun, or begun.
    model, names
        See `mfhpo.portfolios.portfolio`.
    space
        The ranges that the objective asks for, as Optuna's distributions by your names. Numbers
        outside a range are moved to its end. What a range has no number or choice for, such as
        ``gamma="scale"`` among numbers, is left out, so that the sampler draws it. None: values
        are enqueued as they are; what is a number elsewhere is left out where it is none.

    Examples
    --------
    >>> import optuna
    >>> from optuna.distributions import FloatDistribution
    >>> from mfhpo_optuna import enqueue_portfolio
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study()
    >>> ranges = {"C": FloatDistribution(0.01, 10, log=True)}
    >>> enqueue_portfolio(study, "elastic_net", space=ranges)
    >>> study.ask().suggest_float("C", 0.01, 10, log=True)
    1.0
    """
    check_instance("study", study, optuna.Study, "an optuna.Study")
    given = portfolio(model, names=names)
    numbers = {name for one in given for name, value in one.items() if is_number(value)}
    if space is not None:
        _check(space, {name for one in given for name in one})
    for one in given:
        if space is None:
            kept = {n: value for n, value in one.items() if n not in numbers or is_number(value)}
        else:
            kept = _inside(one, space)
        study.enqueue_trial(kept, skip_if_exists=True)


def _check(space: Any, known: Set[str]) -> None:
    check_instance("space", space, Mapping, "a dictionary of distributions")
    if not known & space.keys():
        raise ValueError(
            f"space must have some of the parameters {sorted(known)}, got {shown(space)}; give "
            f"your names of them as names."
        )
    for name, distribution in space.items():
        check_name("a parameter of space", name)
        right = "a distribution such as FloatDistribution(0, 1)"
        check_instance(f"space[{shown(name)}]", distribution, BaseDistribution, right)


def _inside(
    configuration: Mapping[str, Any], space: Mapping[str, BaseDistribution]
) -> dict[str, Any]:
    """Return the values of a configuration that ranges have, numbers moved into them."""
    found = {}
    for name, distribution in space.items():
        value: Any = configuration.get(name)
        if isinstance(distribution, (FloatDistribution, IntDistribution)) and is_number(value):
            value = min(max(value, distribution.low), distribution.high)
            if not contains(distribution, value):  # between two steps
                value = value_at(place_of(value, distribution), distribution)
        if name in configuration and contains(distribution, value):
            found[name] = own_value(distribution, value)
    return found
