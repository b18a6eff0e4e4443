"""What happens while `optimize` runs, and at its end."""
