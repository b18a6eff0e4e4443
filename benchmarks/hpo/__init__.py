"""Hyperparameter optimisation compared at equal cost, in HPOBench's terms."""
