"""What the figures of games share."""
