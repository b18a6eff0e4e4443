"""Syne Tune's ASHA and BOHB."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from syne_tune.optimizer.baselines import ASHA, BOHB

from benchmarks.hpo.ask_tell import Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.peers._levels import step_of
from benchmarks.peers._syne_tune import STEP, VALUE, Schedule, domains_of


def _schedule(setting: Setting, make: Any) -> Schedule:
    np.random.seed(setting.seed)  # noqa: NPY002 - BOHB's searcher takes no other seed
    scheduler = make(
        config_space=domains_of(setting.problem.space),
        metric=VALUE,
        time_attr=STEP,
        max_t=step_of(setting.target),
        do_minimize=False,
        random_seed=setting.seed,
    )
    return Schedule(setting, scheduler, suggest=lambda number: scheduler.suggest().config)


CLOCKED: dict[str, Make] = {
    "syne tune asha": functools.partial(_schedule, make=ASHA),
    "syne tune bohb": functools.partial(_schedule, make=BOHB),
}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
