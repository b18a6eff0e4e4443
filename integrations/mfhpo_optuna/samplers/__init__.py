"""The public samplers, one module each, and their common base."""
