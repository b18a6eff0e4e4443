"""The answers of samplers, in the terms of a study: by their names, which are one class."""

from typing import TypeAlias

from mfhpo.experiment import Answer

StudyRecommendation: TypeAlias = Answer
SearchRecommendation: TypeAlias = Answer
StudyLimitRecommendation: TypeAlias = Answer
