"""What is known or estimated about a problem: noise, bias, confidence radii, fidelity."""
