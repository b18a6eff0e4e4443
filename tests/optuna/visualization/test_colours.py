import numpy as np
import pytest

from mfhpo_optuna.visualization.style import QUIET, SEVERAL, WINNER, level_colour


def luminance(colour):
    """Relative luminance as WCAG 2.2 defines it."""
    parts = np.array([int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


LEVELS = [level_colour(level, n) for n in (1, 2, 3, 5, 8) for level in range(n)]


@pytest.mark.parametrize("background", ["#ffffff", "#111111"])
@pytest.mark.parametrize("colour", [WINNER, QUIET, *SEVERAL, *LEVELS])
def test_every_colour_is_seen_on_white_and_on_black(colour, background):
    assert contrast(colour, background) >= 3.0
