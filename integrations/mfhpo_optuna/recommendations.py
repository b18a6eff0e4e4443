"""The answers of samplers, in the terms of a study."""

from mfhpo.censored.recommendation import UserLimitRecommendation
from mfhpo.racing.recommendation import UserRecommendation
from mfhpo.search.recommendation import UserSearchRecommendation


class StudyLimitRecommendation(UserLimitRecommendation):
    """Which configuration to run, and for how long; see `UserLimitRecommendation`."""


class StudyRecommendation(UserRecommendation):
    """Which configuration to be content with, and how sure that is; see `UserRecommendation`."""


class SearchRecommendation(UserSearchRecommendation, StudyRecommendation):
    """What to be content with of all that was tried; see `UserSearchRecommendation`."""
