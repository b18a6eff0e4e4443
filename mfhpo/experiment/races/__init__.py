"""Races: their settings, and how users declare them."""
