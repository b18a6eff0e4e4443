"""The command `mfhpo`, and what its commands share."""
