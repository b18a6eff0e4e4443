"""Optimisers side by side on a virtual clock, with several workers."""
