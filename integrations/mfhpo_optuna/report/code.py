"""The lines of Python that run a study like this one, as far as it tells them."""

from __future__ import annotations

import re
from typing import Any

from optuna.samplers import BaseSampler

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


def code_of(reading: StudyReading) -> str:
    """The code, or "" where the arguments of the study's sampler are not known."""
    arguments = getattr(reading.sampler, "arguments", {})
    if not arguments:
        return ""
    kind = type(reading.sampler).__name__
    words = [f"{key}={_text(value)}" for key, value in arguments.items()]
    made = f"sampler = {kind}({', '.join(words)})"
    if len(made) > _WIDTH:
        made = "\n".join([f"sampler = {kind}(", *(f"    {word}," for word in words), ")"])
    is_limited = isinstance(reading.sampler, LimitSampler)
    ours = f"{kind}, time_limited" if is_limited else kind
    lines = ["import optuna", *_imports(made), f"from mfhpo_optuna import {ours}", "", made]
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


def _imports(code: str) -> list[str]:
    lines = []
    for package, names in _FROM.items():
        used = [name for name in names if re.search(rf"\b{name}\(", code)]
        if used:
            lines.append(f"from {package} import {', '.join(used)}")
    samplers = sorted(set(re.findall(r"\b(\w+Sampler)\(\)", code)))
    return [*lines, *([f"from optuna.samplers import {', '.join(samplers)}"] if samplers else [])]


def _text(value: Any) -> str:
    return f"{type(value).__name__}()" if isinstance(value, BaseSampler) else repr(value)
