"""Syne Tune's MOBSTER; apart from its ASHA and BOHB, for it needs an earlier release."""

from __future__ import annotations

from syne_tune.optimizer.legacy_baselines import MOBSTER

from benchmarks.hpo.ask_tell import Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.peers._levels import step_of
from benchmarks.peers._syne_tune import STEP, VALUE, Schedule, domains_of


def _schedule(setting: Setting) -> Schedule:
    scheduler = MOBSTER(
        domains_of(setting.problem.space),
        metric=VALUE,
        resource_attr=STEP,
        max_t=step_of(setting.target),
        mode="max",
        random_seed=setting.seed,
    )
    return Schedule(setting, scheduler, suggest=lambda number: scheduler.suggest(number).config)


CLOCKED: dict[str, Make] = {"syne tune mobster": _schedule}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
