"""What the figures show, in plain values and words, whatever draws them."""
