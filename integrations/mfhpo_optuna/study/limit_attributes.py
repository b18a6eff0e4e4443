"""The user attributes of trials by which samplers and enforcers of limits talk to each other."""

from __future__ import annotations

__all__ = ["CENSORED_KEY", "ENFORCER_KEY", "LIMIT_KEY", "MEMORY_KEY", "SECONDS_KEY"]

# The seconds that a trial may take: a sampler writes it before the trial.
LIMIT_KEY = "mfhpo:limit"

# The seconds that a trial really took. `time_limited` writes it, and samplers to which seconds are
# the cost: all workers of a study must read the same.
SECONDS_KEY = "mfhpo:seconds"

# The limit in seconds at which a trial was stopped: its value is censored there.
CENSORED_KEY = "mfhpo:censored_at"

# The limit in bytes at which a trial was stopped for its memory.
MEMORY_KEY = "mfhpo:memory_limit"

# Who enforces the limit that a sampler gave to a trial, "time_limited" or "TimeLimitPruner":
# written when enforcement begins, so that the sampler can warn when nobody does.
ENFORCER_KEY = "mfhpo:enforced_by"
