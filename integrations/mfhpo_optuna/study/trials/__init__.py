"""A study's trials: what is new about them, who runs them, and whose turn it is."""
