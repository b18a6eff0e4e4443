"""A study's trials as observations: arms, levels, leases, order, answers."""
