"""Elimination by learning curves."""
