"""What an experiment may be: a race, a search, a choice of time limits, a game."""
