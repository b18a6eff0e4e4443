"""An experiment's trials as observations: pulls, journal, limits, answers."""
