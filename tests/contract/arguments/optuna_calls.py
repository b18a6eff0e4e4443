"""What users call of mfhpo_optuna, and what its arguments may be."""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import optuna
from optuna.distributions import FloatDistribution

import mfhpo_optuna
from mfhpo_optuna import Fidelity
from tests.contract.arguments import core_calls
from tests.contract.arguments import wrong_values as may
from tests.contract.arguments.calls import Call
from tests.contract.arguments.wrong_values import Kind

_REPLICATES = may.either(may.sequence_of(may.text), may.empty_set)

KINDS: dict[str, Kind] = core_calls.KINDS | may.named(
    (may.one_of("best arm", "reward per cost", "reward per pull"), "aim"),
    (may.nothing, "bias levels proposer pruner sampler"),
    (may.count(1, core_calls.MOST_ARMS), "arms n"),
    (may.sequence_of(may.never), "catch"),
    (may.PROBABILITY, "coverage"),
    (may.optional(may.function), "cost penalty"),
    (may.mapping_of(may.text, may.never), "distributions"),
    (may.text, "fidelity"),
    (may.optional(may.count(2)), "final_step"),
    (may.optional(may.UNLIMITED), "lease memory_limit"),
    (
        may.optional(may.either(may.count(1, 50), may.sequence_of(may.number(0, to="()"), 1))),
        "limits",
    ),
    (may.optional(may.count(0)), "measure seed"),
    (lambda value: type(value) is int and value in (1, -1), "n_jobs"),
    (may.count(0), "n_startup_trials n_warmup_steps"),
    (may.optional(may.text), "name"),
    (may.NONNEGATIVE, "noise"),
    (may.INDEXED_BASELINE, "baseline"),
    (may.function, "objective"),
    (may.never, "path study trial params"),
    (may.optional(may.FLAG), "progress"),
    (may.number(1, to="()"), "reduction_factor"),
    (_REPLICATES, "replicate_params"),
    (may.one_of(None, "fork", "forkserver", "spawn"), "start_method"),
    (may.optional(may.number(0, to="[]")), "timeout"),
    (may.one_of(None, "max", "order", "se", "mfe"), "variant"),
)

NOT_CALLED = {
    "mfhpo_optuna": {"Fidelity", "SearchRecommendation", "StudyCertificate"}
    | {"StudyEquilibrium", "StudyLimitRecommendation", "StudyRecommendation"}
    | {"TimeLimited"},  # it is `time_limited`
}

# Names that are given as those of a fidelity or a replicate.
_NAMES = ("3", "text", "x" * 5_000)
_NUMBERS = itertools.count()
_ARMS = [{"x": 0.1}, {"x": 0.5}]
_NOISE = np.random.default_rng(0)


def _objective(trial: optuna.Trial) -> float:
    level = trial.suggest_int("epochs", 1, 9)
    for name in _NAMES:
        trial.suggest_int(name, 1, 9)
    return trial.suggest_float("x", 0, 1) + 0.05 / level + 0.02 * _NOISE.normal()


def _run(sampler: optuna.samplers.BaseSampler) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(_objective, n_trials=2)


def _prune(pruner: optuna.pruners.BasePruner) -> None:
    study = optuna.create_study(pruner=pruner)
    for _ in range(2):
        trial = study.ask()
        trial.report(0.5, 1)
        trial.should_prune()
        study.tell(trial, 0.5)


@cache
def _study(direction: int = 1) -> optuna.Study:
    study = optuna.create_study(directions=["minimize"] * direction)
    study.optimize(lambda trial: [trial.suggest_float("x", 0, 1)] * direction, n_trials=4)
    return study


@cache
def _raced(make: Callable[..., Any]) -> optuna.Study:
    study = optuna.create_study(sampler=make("epochs"))
    study.optimize(_objective, n_trials=4)
    return study


def _limited(trial: optuna.Trial) -> float:
    seconds = trial.suggest_float("x", 0.1, 1)
    trial.set_user_attr("mfhpo:enforced_by", "time_limited")
    trial.set_user_attr("mfhpo:seconds", seconds)
    return 1.0 - seconds


def _run_limited(sampler: optuna.samplers.BaseSampler) -> None:
    study = optuna.create_study(sampler=sampler)
    study.optimize(_limited, n_trials=3)


def _sampler(cls: Callable[..., Any], methods: tuple[str, ...] = ("recommendation",)) -> dict:
    valid = {"fidelity": Fidelity("epochs", levels=[1, 3, 9]), "arms": _ARMS}
    found = {"": Call(cls, lambda: dict(valid), _run)}
    for method in methods:
        found[f".{method}"] = _asked_of(lambda: _raced(cls), method)
    return found


def _asked_of(raced: Callable[[], optuna.Study], method: str) -> Call:
    """Return the call of a method of a study's sampler, which is asked about the study."""
    return Call(
        lambda **given: getattr(raced().sampler, method)(**given),
        lambda: {"study": raced()},
        signature_of=lambda study: None,
    )


def _of_limits(cls: Callable[..., Any], **valid: Any) -> dict[str, Call]:
    kinds = core_calls.OF_LONGEST if "longest" in valid else {}
    return {"": Call(cls, lambda: {"arms": _ARMS, **valid}, _run_limited, kinds)}


def _certify(**given: Any) -> Any:
    if isinstance(given["objective"], type):  # one that returns no number
        given["objective"] = None
    fresh = {"budget": 4, "top": 2, "name": f"record {next(_NUMBERS)}"}
    return mfhpo_optuna.certify(**{**fresh, **given})


def _observed(sampler: mfhpo_optuna.NashSampler) -> optuna.Study:
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    fidelity = sampler.arguments.get("fidelity")

    trial = study.ask()
    if fidelity is not None:
        trial.suggest_int(fidelity, 1, 2)
    study.tell(trial, [trial.suggest_float(name, 0, 1, step=0.5) for name in ("x", "y")])
    return study


_PLAYERS = {"players": {"row": ["x"], "column": ["y"]}, "budget": 6, "seed": 0}


@cache
def _game() -> tuple[mfhpo_optuna.NashSampler, optuna.Study]:
    sampler = mfhpo_optuna.NashSampler(**_PLAYERS)
    return sampler, _observed(sampler)


def _trial() -> optuna.Trial:
    return _raced(mfhpo_optuna.SearchSampler).ask()


def _asked() -> optuna.Trial:
    trial = _trial()
    _objective(trial)
    return trial


def _plot(plot: Callable[..., Any], study: Callable[[], optuna.Study]) -> Call:
    return Call(plot, lambda: {"study": study()})


def _of_race() -> optuna.Study:
    return _raced(mfhpo_optuna.MFSampler)


@cache
def _of_times() -> optuna.Study:
    study = optuna.create_study(sampler=mfhpo_optuna.RCUCBSampler(arms=2, limits=[0.5, 1.0]))
    study.optimize(_limited, n_trials=4)
    return study


def _any_text(value: Any) -> bool:
    return isinstance(value, str)


def _write(study: Any, path: Any, sampler: Any = None) -> Any:
    path = "/dev/null" if isinstance(path, str) else path  # no file of a name such as "text"
    return mfhpo_optuna.write_report(study, path, sampler=sampler)


CALLS: dict[str, Call] = core_calls._of(
    "mfhpo_optuna",
    IISEPruner=Call(mfhpo_optuna.IISEPruner, use=_prune, kinds={"n_startup_trials": may.count(0)}),
    StopWhenSettled={
        "": Call(mfhpo_optuna.StopWhenSettled, use=lambda stop: stop.outlook(_study())),
        ".outlook": Call.of_method(
            mfhpo_optuna.StopWhenSettled, "outlook", lambda: {"study": _study()}
        ),
        ".is_settled": Call.of_method(
            mfhpo_optuna.StopWhenSettled, "is_settled", lambda: {"study": _study()}
        ),
    },
    MFEliminationPruner=Call(
        mfhpo_optuna.MFEliminationPruner,
        use=_prune,
        kinds={
            "bias": may.either(may.nothing, may.function),
            "n_startup_trials": may.optional(may.count(0)),
            "final_step": may.optional(may.count(1)),
        },
    ),
    IISESampler=_sampler(mfhpo_optuna.IISESampler),
    MFEliminationSampler=_sampler(mfhpo_optuna.MFEliminationSampler),
    MFGradSampler=_sampler(mfhpo_optuna.MFGradSampler),
    MFLUCBSampler=_sampler(mfhpo_optuna.MFLUCBSampler),
    MFSampler=_sampler(mfhpo_optuna.MFSampler, ("recommendation", "choice")),
    MFTopTwoSampler=_sampler(mfhpo_optuna.MFTopTwoSampler),
    MFUCBSampler=_sampler(mfhpo_optuna.MFUCBSampler),
    NashSampler={
        "": Call(
            mfhpo_optuna.NashSampler,
            lambda: dict(_PLAYERS),
            _observed,
            {"budget": may.number(0, to="()"), "fidelity": may.optional(may.text)},
        ),
        ".equilibrium": Call.of_method(
            lambda: _game()[0], "equilibrium", lambda: {"study": _game()[1]}
        ),
        ".deviations": Call.of_method(
            lambda: _game()[0],
            "deviations",
            lambda: {"study": _game()[1], "params": {"x": 0.5, "y": 0.5}},
        ),
    },
    RCUCBSampler={
        **_of_limits(mfhpo_optuna.RCUCBSampler, limits=[0.5, 2.0]),
        ", limits derived": Call(mfhpo_optuna.RCUCBSampler, lambda: {"arms": _ARMS}, _run_limited),
        ".best_limit": _asked_of(lambda: _of_times(), "best_limit"),
    },
    ZoomingRCUCBSampler=_of_limits(mfhpo_optuna.ZoomingRCUCBSampler, longest=2.0),
    SearchSampler={
        "": Call(
            mfhpo_optuna.SearchSampler,
            use=_run,
            kinds={"fidelity": may.optional(may.text)},
        ),
        ", of candidates": Call(
            mfhpo_optuna.SearchSampler,
            lambda: {"candidates": _ARMS, "epsilon": 0.1, "budget": 10, "fidelity": "epochs"},
            _run,
            {
                "epsilon": may.optional(may.NONNEGATIVE),
                "fidelity": may.optional(may.text),
            },
        ),
    },
    TimeLimitPruner=Call(mfhpo_optuna.TimeLimitPruner, use=_prune),
    time_limited=Call(
        mfhpo_optuna.time_limited,
        lambda: {"objective": _objective},
        lambda made: made.close(),
    ),
    certify=Call(
        _certify,
        lambda: {"study": _study(), "objective": _objective_of_study},
        signature_of=mfhpo_optuna.certify,
        kinds={
            "budget": may.optional(may.count(2)),
            "catch": may.either(may.sequence_of(may.never), may.empty_set),
            "fidelity": may.optional(may.text),
            "plan": may.FLAG,
            "top": may.optional(may.count(2)),
        },
    ),
    draw_arms=Call(
        mfhpo_optuna.draw_arms,
        lambda: {"distributions": {"x": FloatDistribution(0, 1)}},
        kinds={"seed": may.count(0), "distributions": may.never},
    ),
    enqueue_portfolio=Call(
        mfhpo_optuna.enqueue_portfolio,
        lambda: {"study": optuna.create_study(), "model": "svm"},
        kinds={"space": may.nothing},
    ),
    plot_dissatisfaction=_plot(mfhpo_optuna.plot_dissatisfaction, lambda: _game()[1]),
    plot_equilibrium=_plot(mfhpo_optuna.plot_equilibrium, lambda: _game()[1]),
    plot_gain=_plot(mfhpo_optuna.plot_gain, _of_times),
    plot_race=_plot(mfhpo_optuna.plot_race, _of_race),
    publish_to_dashboard=_plot(mfhpo_optuna.publish_to_dashboard, _of_race),
    seed_of=Call(mfhpo_optuna.seed_of, lambda: {"trial": _trial()}),
    training_of=Call(mfhpo_optuna.training_of, lambda: {"trial": _asked()}),
    write_report=Call(
        _write, lambda: {"study": _of_race(), "path": "/dev/null"}, kinds={"path": _any_text}
    ),
)


def _objective_of_study(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", 0, 1) + 0.01 * _NOISE.normal()
