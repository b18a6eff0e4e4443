"""The public schedulers, one module each, and their common base."""
