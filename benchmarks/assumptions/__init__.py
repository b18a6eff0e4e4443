"""How often certificates are wrong when what they suppose does not hold."""
