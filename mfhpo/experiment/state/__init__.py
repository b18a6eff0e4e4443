"""The state of an experiment after some events: what happened, what is next, the answer."""
