"""What becomes of suggestions, memory and trials per second in long studies with many workers."""
