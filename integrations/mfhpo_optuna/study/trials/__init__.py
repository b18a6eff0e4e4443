"""What a study says of its trials, and of those that are under way."""
