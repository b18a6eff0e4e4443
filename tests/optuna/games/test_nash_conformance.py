"""Optuna's own suite for samplers of several objectives, on `NashSampler`.

The rest of the suite is not applied: its objectives have one value and suggest whatever they like,
while in a game each objective is a player's, and each parameter has an owner; what others do is an
error, as `test_nash_bad_input.py` has it. Every kind of parameter with a game under way is in
`test_nash_sampler.py`, parameters that something else sets in `test_nash_resume.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from optuna.testing.pytest_samplers import MultiObjectiveSamplerTestCase

from mfhpo_optuna import NashSampler


class TestSeveralObjectives(MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], NashSampler]:
        return lambda: NashSampler({"row": ["x"], "column": ["y"]}, budget=10, seed=0)
