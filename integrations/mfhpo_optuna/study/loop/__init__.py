"""What happens in the loop of `optimize`, of which Optuna tells its samplers little."""
