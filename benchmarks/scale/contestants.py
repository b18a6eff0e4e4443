"""The samplers that are measured: ours, and Optuna's own beside them."""

from collections.abc import Callable

from optuna.samplers import BaseSampler

from benchmarks.overhead import SAMPLERS
from mfhpo_optuna import IISESampler, RCUCBSampler, SearchSampler

# Trials on a virtual clock last longer than any lease in real seconds.
_NO_LEASE = 1e12

# So many that no race ends while it is measured.
_HORIZON = 10**7


def _rcucb(seed: int, lease: float | None = None) -> RCUCBSampler:
    return RCUCBSampler(
        32, [20.0, 80.0], reward_range=(0.0, 1.0), horizon=_HORIZON, lease=lease, seed=seed
    )


OURS = ("IISESampler", "SearchSampler", "RCUCBSampler")

LONG: dict[str, Callable[[int], BaseSampler]] = {
    "IISESampler": SAMPLERS["IISESampler"],
    "SearchSampler": SAMPLERS["SearchSampler"],
    "RCUCBSampler": _rcucb,
    "TPESampler": SAMPLERS["TPESampler"],
    "RandomSampler": SAMPLERS["RandomSampler"],
}
"""By name, with a seed, for studies with a long history."""

CLOCKED: dict[str, Callable[[int], BaseSampler]] = {
    "IISESampler": lambda seed: IISESampler(
        "fidelity", 32, epsilon=0.0, lease=_NO_LEASE, seed=seed
    ),
    "SearchSampler": lambda seed: SearchSampler("fidelity", lease=_NO_LEASE, seed=seed),
    "RCUCBSampler": lambda seed: _rcucb(seed, _NO_LEASE),
    "TPESampler": lambda seed: SAMPLERS["TPESampler"](seed),
    "RandomSampler": SAMPLERS["RandomSampler"],
}
"""The same for workers on a virtual clock."""
