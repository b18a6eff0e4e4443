"""The parts of a race beside its rule: pilot, costs, failures, the winner, audits, words."""
