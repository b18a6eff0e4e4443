"""The public schedulers, and their common base."""
