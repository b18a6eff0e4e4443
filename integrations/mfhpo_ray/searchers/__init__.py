"""The public searchers, and their common base."""
