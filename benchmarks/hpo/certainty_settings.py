"""Under which noise, tolerance and levels the races for the best of a pool are held."""

from dataclasses import dataclass

from benchmarks.hpo.problems import DEVELOPMENT_TASKS


@dataclass(frozen=True)
class Setting:
    """Noise, tolerance and levels of some races.

    Parameters
    ----------
    sigma, epsilon
        In percent of accuracy.
    levels
        Levels of the fidelity; None for each problem's default.
    """

    sigma: float
    epsilon: float
    levels: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """In words."""
        levels = ""
        if self.levels is not None:
            levels = f", epochs {' '.join(f'{level:g}' for level in self.levels)}"
        return f"sigma {self.sigma:g}, epsilon {self.epsilon:g}{levels}"

    def tasks(self) -> list[str]:
        """The tasks that have these levels."""
        return [
            task for task in DEVELOPMENT_TASKS if self.levels is None or task.startswith("lcbench ")
        ]


SETTINGS = (
    Setting(0.5, 0.5),
    Setting(0.5, 0.5, (1.0, 3.0, 9.0, 27.0, 52.0)),
    Setting(0.5, 1.0),
    Setting(2.0, 2.0),
    Setting(2.0, 1.0),
)
"""The first one is the one that the others are variations of."""
