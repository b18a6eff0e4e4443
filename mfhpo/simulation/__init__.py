"""Instances of the papers, replayed tables, and the loop that runs policies on them."""
