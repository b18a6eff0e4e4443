"""The command `mfhpo`, one module for each of its commands."""
