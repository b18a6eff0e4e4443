"""The Gaussian process over the utilities of all players, and its parameters."""
