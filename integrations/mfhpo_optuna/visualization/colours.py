"""Colours that can be told apart on white and on black, in a grey print, and by the colour-blind.

Each has a contrast of at least 3 to both backgrounds, so that a figure may change its template.
"""

import numpy as np

# From the cheapest level to the target: from green to violet, and from light to dark.
_LEVELS = ("#24a08c", "#1f8fb8", "#3b78c4", "#5a5fd0", "#7048c8")
WINNER = "#d55e00"
QUIET = "#808080"  # what is beside the point
# Okabe and Ito's, darkened where they vanish on white: players of a game, arms beside the winner.
SEVERAL = ("#0077c0", "#00966c", "#c0609a", "#9a7d0a", "#8a6fd1")


def level_colour(level: int, n_levels: int) -> str:
    """Return the colour of a level by its index: the target's is always the darkest."""
    share = level / (n_levels - 1) if n_levels > 1 else 1.0
    places = np.linspace(0.0, 1.0, len(_LEVELS))
    mixed = [np.interp(share, places, part) for part in zip(*map(_rgb, _LEVELS), strict=True)]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def faded(colour: str, opacity: float) -> str:
    """Return the colour as one that is seen through."""
    red, green, blue = _rgb(colour)
    return f"rgba({red}, {green}, {blue}, {opacity})"


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
