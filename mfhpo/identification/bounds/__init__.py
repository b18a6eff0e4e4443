"""What a certificate costs at least, and the radii and thresholds of the papers."""
