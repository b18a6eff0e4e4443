"""The public pruners, one module each."""
