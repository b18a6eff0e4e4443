"""The public samplers, and their common base."""
