"""The answer of a study whose trials have time limits, in the terms of its study."""

from __future__ import annotations

from mfhpo.censored.user_recommendation import UserLimitRecommendation

__all__ = ["StudyLimitRecommendation"]


class StudyLimitRecommendation(UserLimitRecommendation):
    """Which configuration to run, for how long, and the gain of that.

    See `UserLimitRecommendation` for its fields. Under ``study.ask`` and ``study.tell``,
    ``finished`` is when to stop.
    """
