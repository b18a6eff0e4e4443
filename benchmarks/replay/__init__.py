"""Runs with fixed seeds whose every choice is recorded, so that a refactoring can change none."""
