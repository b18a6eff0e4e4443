"""Instances of the papers, and the loop that runs policies on them."""
