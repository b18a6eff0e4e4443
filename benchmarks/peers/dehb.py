"""DEHB: differential evolution within Hyperband."""

from __future__ import annotations

import math
import tempfile

from dehb import DEHB

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.peers._config_space import config_space_of
from benchmarks.peers._levels import level_of, step_of
from benchmarks.peers._values import plain


class Evolution:
    """DEHB, asked and told; its incumbent is the best of all evaluations, of any level.

    It is told of one worker whatever their number: for more it would begin processes, in which it
    would itself evaluate. What it proposes while evaluations are under way is the same.
    """

    def __init__(self, setting: Setting) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._optimiser = DEHB(
            cs=config_space_of(setting.problem.space, setting.seed),
            min_fidelity=step_of(0),
            max_fidelity=step_of(setting.target),
            n_workers=1,
            seed=setting.seed,
            output_path=self._folder.name,
            save_freq="end",  # saving is for resuming, and would be paid by every incumbent
            log_level="ERROR",
        )

    def ask(self) -> Job:
        """The next evaluation."""
        job = self._optimiser.ask()
        return Job(plain(job["config"]), level_of(job["fidelity"]), job)

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """Take in a value and its cost."""
        fitness = -value if math.isfinite(value) else math.inf
        self._optimiser.tell(job.handle, {"fitness": fitness, "cost": seconds})

    def advice(self) -> Advice | None:
        """The incumbent."""
        if not math.isfinite(self._optimiser.inc_score):
            return None
        incumbent, score = self._optimiser.get_incumbents()
        return Advice(plain(incumbent), -float(score))


CLOCKED: dict[str, Make] = {"dehb": Evolution}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
