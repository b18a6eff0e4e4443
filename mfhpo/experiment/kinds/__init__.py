"""The kinds of experiments: a race, a search, a choice of time limits, a game."""
