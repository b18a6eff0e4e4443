"""Options of searches by name: those of their policy, and their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from mfhpo.censored.options import RCUCBOptions, ZoomingRCUCBOptions
from mfhpo.search import SearchOptions as BudgetOptions


class SearchOptions(TypedDict, total=False):
    """Options of every search that runs a policy.

    Parameters
    ----------
    metric
        The metric, of which a trial's last result counts. None: that of ``TuneConfig``, which
        reaches a search only together with a ``param_space``.
    mode
        Whether to maximise the metric, "max", or to minimise it, "min". None: as for `metric`.
    space
        Search space of the arms, in Tune's terms. None: the ``param_space`` of the Tuner, whose
        constants are part of each trial anyway. A ``tune.sample_from`` of the ``param_space`` is
        drawn by Tune anew in each trial, and an answer says so; in `space`, it is drawn once for
        each arm.
    seed_key
        The key of the configuration that gets a seed from 0 to 2**31 - 1, no two trials of a race
        the same. None: no seed is set, and trials have to draw their own.
    seed
        Makes arms, pilot and seeds repeatable. None: drawn, and saved with the experiment.
    """

    metric: str | None
    mode: str | None
    space: Mapping[str, Any] | None
    seed_key: str | None
    seed: int | None


class FidelitySearchOptions(SearchOptions, total=False):
    """Options of every search over a fidelity.

    Parameters
    ----------
    prices
        Price of a second by unit of a resource, such as ``{"CPU": 1, "GPU": 20}``, where costs are
        measured; what is not named is free. It needs ``scheduler=search.scheduler()``. None: a
        second costs 1.
    """

    prices: Mapping[str, float] | None


class LimitSearchOptions(SearchOptions, total=False):
    """Options of every search that chooses time limits.

    Parameters
    ----------
    limit_key
        The key of the configuration that gets the limit in seconds, None while there is none.
    """

    limit_key: str


class SpaceSearchOptions(BudgetOptions, FidelitySearchOptions):
    """Options of `SpaceSearch`."""


class RCUCBSearchOptions(RCUCBOptions, LimitSearchOptions):
    """Options of `RCUCBSearch`."""


class ZoomingRCUCBSearchOptions(ZoomingRCUCBOptions, LimitSearchOptions):
    """Options of `ZoomingRCUCBSearch`."""
