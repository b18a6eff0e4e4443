"""Likelihood ratios between arms, and the stopping rule on them."""
