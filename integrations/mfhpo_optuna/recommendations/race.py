"""The answer of a race in the terms of its study."""

from __future__ import annotations

from mfhpo.racing.recommendation import UserRecommendation

__all__ = ["StudyRecommendation"]


class StudyRecommendation(UserRecommendation):
    """Which configuration a study should be content with, and how sure that is.

    See `UserRecommendation` for its fields. Under ``study.ask`` and ``study.tell``, ``finished``
    is when to stop.
    """
