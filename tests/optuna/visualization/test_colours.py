import itertools

import numpy as np
import pytest

from mfhpo_optuna.visualization.colours import QUIET, SEVERAL, WINNER, faded, level_colour


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


@pytest.mark.parametrize("n_levels", [2, 3, 5, 8])
def test_levels_darken_towards_the_target(n_levels):
    shades = [luminance(level_colour(level, n_levels)) for level in range(n_levels)]
    assert all(darker < lighter for lighter, darker in itertools.pairwise(shades))
    assert level_colour(n_levels - 1, n_levels) == level_colour(0, 1)


def test_faded_colours_keep_their_hue():
    assert faded("#d55e00", 0.2) == "rgba(213, 94, 0, 0.2)"
