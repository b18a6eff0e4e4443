"""Instances with known means, and loops that run policies on them, one pull at a time or fast."""
