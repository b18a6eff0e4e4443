"""What a race consists of beside its rule: pilot, costs, failures, the winner, audits, words."""
