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
from tests.contract.arguments.calls import Call
from tests.contract.arguments.wrong_values import (
    FLAG,
    NONNEGATIVE,
    UNLIMITED,
    Kind,
    anything,
    count,
    either,
    empty_set,
    function,
    mapping_of,
    named,
    never,
    nothing,
    number,
    one_of,
    optional,
    sequence_of,
    text,
)
from tests.ray.certification.grids import Grid, trial

_NAMES = either(text, sequence_of(text), empty_set)

KINDS: dict[str, Kind] = core_calls.KINDS | named(
    (optuna_calls.KINDS["aim"], "aim"),
    (optuna_calls.KINDS["baseline"], "baseline"),
    (count(1, core_calls.MOST_ARMS), "arms"),
    (mapping_of(text, anything), "config"),
    (optional(function), "cost penalty"),
    (nothing, "costs levels"),
    (text, "fidelity limit_key time_attr"),
    (optional(count(1, 9)), "grace_period"),
    (optional(UNLIMITED), "limit memory_limit"),
    (optuna_calls.KINDS["limits"], "limits"),
    (count(1), "max_concurrent"),
    (optional(count(2)), "max_t"),
    (optional(count(0)), "measure seed"),
    (optional(text), "metric replicate seed_key"),
    (one_of(None, "max", "min"), "mode"),
    (NONNEGATIVE, "noise"),
    (optional(number(1, to="()")), "reduction_factor"),
    (either(nothing, lambda value: isinstance(value, dict)), "space"),
    (one_of(None, "max", "order", "se", "mfe"), "variant"),
    (never, "what"),
)

NOT_CALLED = {
    "mfhpo_ray": {"TuneLimitRecommendation", "TuneRecommendation"}
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
            kinds={"limit": nothing} if "limits" in valid or "longest" in valid else {},
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
            "measure": optional(count(1)),
            "replicate": _NAMES,
            "seed": count(0),
        },
    ),
    IISESearch=_search(mfhpo_ray.IISESearch, **_FIDELITY),
    MFEliminationScheduler=Call(
        mfhpo_ray.MFEliminationScheduler,
        lambda: {"max_t": 9, "metric": "loss", "mode": "min"},
        kinds={
            "bias": either(nothing, function),
            "replicate": _NAMES,
        },
    ),
    MFEliminationSearch=_search(mfhpo_ray.MFEliminationSearch, **_FIDELITY),
    MFGradSearch=_search(mfhpo_ray.MFGradSearch, **_FIDELITY),
    MFLUCBSearch=_search(mfhpo_ray.MFLUCBSearch, **_FIDELITY),
    MFSearch=_search(mfhpo_ray.MFSearch, **_FIDELITY),
    MFUCBSearch=_search(mfhpo_ray.MFUCBSearch, **_FIDELITY),
    PullScheduler=Call(PullScheduler),
    StopWhenSettled=Call(
        mfhpo_ray.StopWhenSettled,
        lambda: {"metric": "loss", "mode": "min"},
        lambda stop: stop("trial", {"loss": 1.0}),
    ),
    RCUCBScheduler=Call(
        mfhpo_ray.RCUCBScheduler,
        lambda: {"metric": "loss", "mode": "min"},
        kinds={"replicate": _NAMES},
    ),
    RCUCBSearch=_search(mfhpo_ray.RCUCBSearch, limits=[0.5, 2.0]),
    SpaceSearch={
        **_search(mfhpo_ray.SpaceSearch),
        ", of candidates": Call(
            mfhpo_ray.SpaceSearch,
            lambda: {"candidates": _ARMS, "epsilon": 0.1, "budget": 10, "fidelity": "epochs"},
            kinds={
                "epsilon": optional(NONNEGATIVE),
                "fidelity": optional(text),
            },
        ),
    },
    ZoomingRCUCBSearch=_search(mfhpo_ray.ZoomingRCUCBSearch, arms=2, longest=2.0),
    certify=Call(
        lambda **given: _certify(**given),
        lambda: {"results": _grid(), "trainable": print, "metric": "acc", "mode": "max"},
        signature_of=mfhpo_ray.certify,
        kinds={
            "budget": optional(count(1)),
            "fidelity": nothing,
            "measure": count(0),
            "max_concurrent_trials": optional(count(1)),
            "max_failures": count(1),
            "replicates": nothing,  # without a replicate
            "results": never,
            "reuse_actors": FLAG,
            "run_config": nothing,
            "timeout": optional(UNLIMITED),
            "plan": FLAG,
            "top": optional(count(2)),
            "trainable": either(text, function),
        },
        apart=frozenset({"name"}),  # of a folder, which the storage checks
    ),
    recommendation=Call(
        mfhpo_ray.recommendation,
        lambda: {"what": _begun()},
    ),
)
CALLS["mfhpo_ray.SpaceSearch"].kinds["fidelity"] = optional(text)


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
