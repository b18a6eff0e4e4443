"""Benchmarks: the papers' tables, hyperparameter problems, and peers."""
