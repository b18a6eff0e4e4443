"""The lines of Python that run a study like this one, as far as it tells them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import optuna
from optuna.samplers import BaseSampler

from mfhpo_optuna.arguments import from_json, name_of, to_json
from mfhpo_optuna.report.reading import StudyReading
from mfhpo_optuna.samplers.limit_sampler import LimitSampler

_FROM = {
    "mfhpo": ("Bias", "Bounded", "EstimatedNoise", "Fidelity", "Gaussian", "SubGaussian"),
    "mfhpo.censored": ("Linear",),
    "optuna.distributions": (
        "CategoricalDistribution",
        "FloatDistribution",
        "IntDistribution",
    ),
}

_WIDTH = 88  # in characters
_REMARK = ",  # "


def code_of(reading: StudyReading) -> str:
    """The code, or "" where the arguments of the study's sampler are not known."""
    arguments = getattr(reading.sampler, "arguments", {})
    if not arguments:
        return ""
    kind = type(reading.sampler).__name__
    samplers = [name_of(value) for value in arguments.values() if isinstance(value, BaseSampler)]
    words = [_word(name, value) for name, value in arguments.items()]
    made = f"sampler = {kind}({' '.join(words).rstrip(',')})"
    if len(made) > _WIDTH or any(_REMARK in word for word in words):
        made = "\n".join([f"sampler = {kind}(", *(f"    {word}" for word in words), ")"])
    is_limited = isinstance(reading.sampler, LimitSampler)
    ours = f"{kind}, time_limited" if is_limited else kind
    lines = [
        "import optuna",
        *_imports(made, samplers),
        f"from mfhpo_optuna import {ours}",
        "",
        made,
    ]
    ways = [way.name.lower() for way in reading.study.directions]
    direction = f"direction={ways[0]!r}" if len(ways) == 1 else f"directions={ways}"
    name = reading.study.study_name
    named = "" if name.startswith("no-name-") else f", study_name={name!r}"
    lines.append(f"study = optuna.create_study({direction}, sampler=sampler{named})")
    if is_limited:
        lines += ["with time_limited(objective) as limited:", "    study.optimize(limited)"]
    else:
        lines.append("study.optimize(objective)")
    return "\n".join(lines)


def _word(name: str, value: Any) -> str:
    """An argument with its comma, as a study that was loaded has it, or why it is left out."""
    if isinstance(value, BaseSampler):
        return f"{name}={name_of(value)}(...){_REMARK}its arguments are not known"
    try:
        kept = from_json(to_json({name: value}))[name]
    except ValueError:  # as of a function
        return f"{name}=...{_REMARK}the study does not keep it"
    return f"{name}={kept!r},"


def _imports(code: str, samplers: Iterable[str]) -> list[str]:
    lines = []
    for package, names in _FROM.items():
        used = [name for name in names if re.search(rf"\b{name}\(", code)]
        if used:
            lines.append(f"from {package} import {', '.join(used)}")
    known = sorted(name for name in set(samplers) if hasattr(optuna.samplers, name))
    return [*lines, *([f"from optuna.samplers import {', '.join(known)}"] if known else [])]
