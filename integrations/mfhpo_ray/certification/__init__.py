"""What the winner of a finished experiment is really worth."""
