"""Best-arm identification with fixed confidence, one module per algorithm."""
