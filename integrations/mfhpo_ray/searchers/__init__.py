"""The public searchers, one module each, and their common base."""
