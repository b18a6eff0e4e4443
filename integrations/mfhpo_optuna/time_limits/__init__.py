"""Time and memory limits: trials in processes that can be killed."""
