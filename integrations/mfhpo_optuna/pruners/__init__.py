"""The public pruners, and what those of learning curves share."""
