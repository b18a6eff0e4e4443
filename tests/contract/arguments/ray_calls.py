"""What users call of mfhpo_ray, and what its arguments may be."""

import itertools
import tempfile
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from ray import tune

import mfhpo_ray
from mfhpo_ray import PullScheduler
from tests.contract.arguments import core_calls, optuna_calls
from tests.contract.arguments import wrong_values as may
from tests.contract.arguments.calls import Call
from tests.contract.arguments.wrong_values import Kind
from tests.ray.certification.grids import Grid, trial

_NAMES = may.either(may.text, may.sequence_of(may.text), may.empty_set)

KINDS: dict[str, Kind] = core_calls.KINDS | may.named(
    (optuna_calls.KINDS["aim"], "aim"),
    (may.count(1, core_calls.MOST_ARMS), "arms"),
    (may.optional(may.FINITE), "best_no_better_than second_no_worse_than"),
    (may.mapping_of(may.text, may.anything), "config"),
    (may.optional(may.function), "cost penalty"),
    (may.nothing, "costs levels prices"),
    (may.text, "fidelity limit_key time_attr training_key"),
    (may.optional(may.count(1, 9)), "grace_period"),
    (may.optional(may.UNLIMITED), "limit memory_limit"),
    (optuna_calls.KINDS["limits"], "limits"),
    (may.count(1), "max_concurrent"),
    (may.optional(may.count(2)), "max_t"),
    (may.optional(may.count(0)), "measure n_startup_trials seed"),
    (may.optional(may.text), "metric replicate seed_key"),
    (may.one_of(None, "max", "min"), "mode"),
    (may.NONNEGATIVE, "noise"),
    (may.optional(may.number(1, to="()")), "reduction_factor"),
    (may.either(may.nothing, lambda value: isinstance(value, dict)), "space"),
    (may.one_of(None, "max", "order", "se", "mfe"), "variant"),
    (may.never, "what"),
)

NOT_CALLED = {
    "mfhpo_ray": {"Luckiest", "TuneLimitRecommendation", "TuneRecommendation"}
    | {"TuneCertificate", "TuneSearchRecommendation"}
}

_NUMBERS = itertools.count()
_FOLDER = tempfile.TemporaryDirectory()
_ARMS = [{"x": 0.1}, {"x": 0.5}]
_SPACE = {
    "x": tune.uniform(0, 1),
    "epochs": tune.randint(1, 9),
    **{name: tune.randint(1, 9) for name in ("3", "text", "x" * 5_000)},
}


def _search(cls: Callable[..., Any], **valid: Any) -> dict[str, Call]:
    valid = {"metric": "loss", "mode": "min", **valid}

    def fresh() -> Any:
        return cls(**valid)

    def use(search: Any) -> None:
        metric = "loss" if search.metric is None else None
        mode = "min" if search.mode is None else None
        search.set_search_properties(metric, mode, _SPACE)
        search.suggest("a")

    kinds = core_calls.OF_LONGEST if "longest" in valid else {}
    return {
        "": Call(cls, lambda: dict(valid), use, kinds),
        ".scheduler": Call.of_method(
            fresh,
            "scheduler",
            kinds={"limit": may.nothing} if "limits" in valid or "longest" in valid else {},
        ),
        ".set_search_properties": Call.of_method(
            fresh,
            "set_search_properties",
            lambda: {"metric": "loss", "mode": "min", "config": dict(_SPACE)},
            known_as={"config": "space"},
        ),
        ".set_max_concurrency": Call.of_method(
            fresh, "set_max_concurrency", lambda: {"max_concurrent": 2}
        ),
    }


_FIDELITY = {"fidelity": "epochs"}

CALLS: dict[str, Call] = core_calls._of(
    "mfhpo_ray",
    IISEScheduler=Call(
        mfhpo_ray.IISEScheduler,
        lambda: {"max_t": 9, "metric": "loss", "mode": "min"},
        kinds={
            "arms": may.optional(may.count(2)),
            "measure": may.optional(may.count(1)),
            "replicate": _NAMES,
            "seed": may.count(0),
        },
    ),
    IISESearch=_search(mfhpo_ray.IISESearch, **_FIDELITY),
    MFEliminationScheduler=Call(
        mfhpo_ray.MFEliminationScheduler,
        lambda: {"max_t": 9, "metric": "loss", "mode": "min"},
        kinds={
            "arms": may.optional(may.count(2)),
            "bias": may.either(may.nothing, may.function),
            "replicate": _NAMES,
        },
    ),
    MFEliminationSearch=_search(mfhpo_ray.MFEliminationSearch, **_FIDELITY),
    MFGradSearch=_search(mfhpo_ray.MFGradSearch, **_FIDELITY),
    MFLUCBSearch=_search(mfhpo_ray.MFLUCBSearch, **_FIDELITY),
    MFSearch=_search(mfhpo_ray.MFSearch, **_FIDELITY),
    MFUCBSearch=_search(mfhpo_ray.MFUCBSearch, **_FIDELITY),
    PullScheduler=Call(PullScheduler),
    RCUCBScheduler=Call(
        mfhpo_ray.RCUCBScheduler,
        lambda: {"metric": "loss", "mode": "min"},
        kinds={"arms": may.optional(may.count(2)), "replicate": _NAMES},
    ),
    RCUCBSearch=_search(mfhpo_ray.RCUCBSearch, limits=[0.5, 2.0]),
    SpaceSearch={
        **_search(mfhpo_ray.SpaceSearch),
        ", of candidates": Call(
            mfhpo_ray.SpaceSearch,
            lambda: {"candidates": _ARMS, "epsilon": 0.1, "budget": 10, "fidelity": "epochs"},
            kinds={
                "chance": may.optional(may.PROBABILITY),
                "epsilon": may.optional(may.NONNEGATIVE),
                "fidelity": may.optional(may.text),
            },
        ),
    },
    ZoomingRCUCBSearch=_search(mfhpo_ray.ZoomingRCUCBSearch, arms=2, longest=2.0),
    certify=Call(
        lambda **given: _certify(**given),
        lambda: {"results": _grid(), "trainable": print, "metric": "acc", "mode": "max"},
        signature_of=mfhpo_ray.certify,
        kinds={
            "budget": may.optional(may.count(1)),
            "fidelity": may.nothing,
            "measure": may.count(0),
            "max_concurrent_trials": may.optional(may.count(1)),
            "max_failures": may.count(1),
            "results": may.never,
            "reuse_actors": may.FLAG,
            "run_config": may.nothing,
            "timeout": may.optional(may.UNLIMITED),
            "top": may.count(2),
            "trainable": may.either(may.text, may.function),
        },
        apart=frozenset({"name"}),  # of a folder, which the storage checks
    ),
    recommendation=Call(
        mfhpo_ray.recommendation,
        lambda: {"what": _begun()},
    ),
)
CALLS["mfhpo_ray.SpaceSearch"].kinds["fidelity"] = may.optional(may.text)


def _certify(**given: Any) -> Any:
    fresh = {"name": f"record {next(_NUMBERS)}"}
    with patch.object(tune.Tuner, "fit", lambda tuner: _grid()):
        return mfhpo_ray.certify(**{**fresh, **given})


def _grid() -> Any:
    return Grid(trial(1, 0.5), trial(2, 0.6), trial(3, 0.7), folder=_FOLDER.name)


def _begun() -> Any:
    search = mfhpo_ray.IISESearch(**_FIDELITY, metric="loss", mode="min")
    search.set_search_properties(None, None, _SPACE)
    search.suggest("a")
    return search
