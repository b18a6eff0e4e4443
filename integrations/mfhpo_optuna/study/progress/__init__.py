"""Where a study stands, shown while it runs."""
