"""What happens while `optimize` runs, and at its end: of that Optuna tells samplers little."""
