"""Search by a model of all levels: what to begin, and which arms are worth going on with."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from mfhpo.knowledge.arrays import FloatArray
from mfhpo.problem import Pull
from mfhpo.racing.native import one_thread
from mfhpo.search import promotions
from mfhpo.search.model.acquisition import View, best_place
from mfhpo.search.model.process import LevelData, LevelProcess
from mfhpo.search.model.rows import Told
from mfhpo.search.policy import FEWEST, SearchPolicy

# Observations that the model is conditioned on, and that its parameters are fitted to: the time
# for a suggestion stays the same however many trials there are.
_MOST, _MOST_FITTED = 300, 200
_GROWTH = 1.25  # of the observations, between two fits
_ENOUGH_KNOWN = 3  # values at a level, for given arms to be ranked by what they are worth there
_GOOD = 5  # arms around which better ones are sought
_DIGITS = 6  # to which configurations that are the same agree
_REACH = 2.0  # standard deviations in which an arm's value may lie
# The share of its expected improvement that a new arm counts for. Arms that were begun are
# preferred, because a new one's promise is the largest of many guesses.
_PATIENCE = 0.75
# Of parameters, for a chance; of values for each; and rivals that are looked at.
_DRAWS, _OF_EACH, _MOST_RIVALS = 16, 250, 100
_MOST_WORTH = 100.0  # of a step, as a multiple of what would be done in its place
_RANDOM_SHARE = 0.05  # of new arms, against a model that is wrong


class ModelSearch(SearchPolicy):
    """Begins the arm with the largest expected improvement, or goes on with one begun before.

    One Gaussian process (`LevelProcess`) models the values at all levels. The next step is the one
    with the largest expected improvement at the target for what it costs to get there. Arms are
    never stopped for good: one that is left waits until nothing better is in sight (Swersky, Snoek
    and Adams, Freeze-thaw Bayesian optimization, arXiv 1406.3896, 2014). Each new arm is chosen
    under freshly sampled model parameters (Thompson sampling), so that the search keeps testing its
    own beliefs. The most probable parameters say which finished arm is best. Arms that are given go
    up as `mfhpo.search.promotions.next_of_given` says, by what the model expects of them.

    With several workers, a pull under way counts as if it had told what is expected at its level
    (Ginsbourger, Le Riche and Carraro, Kriging is well-suited to parallelize optimization, 2010).
    """

    def __init__(self, costs: Sequence[float], **options: Any) -> None:
        super().__init__(costs, **options)
        # By the level that stands for the target, what the model was fitted to, and the model: with
        # several workers, the next step and the leader take turns with different ones.
        self._fits: dict[int, tuple[tuple[int, int, int], LevelProcess]] = {}
        self._told_so_far = Told(len(self.costs))
        # What the most probable and the drawn parameters say, each with what it was made from.
        self._views: dict[int, tuple[int, View]] = {}
        self._drawn_view: tuple[object, View] | None = None

    @one_thread()
    def ask(self, begun: int, pending: Sequence[Pull] = ()) -> Pull | None:
        """Return what to evaluate next."""
        self.worth, self.point = 1.0, None
        if self.n_given:
            return promotions.next_of_given(self, pending, self._expected)
        step = promotions.first_step(self, begun, pending)
        if step is not None:
            return step
        top = self._known_level(pending)
        if top < self.target:
            step = promotions.promotion(self, self.lowest, pending) if pending else None
            if step is not None:
                # What is between would cost, and say little more.
                return (
                    step
                    if self.continues
                    else Pull(step.arm, promotions.highest_open(self, pending))
                )
        if top < 0:
            return Pull(begun, self.lowest)
        rng = np.random.default_rng([self._seed, begun, self._told])
        view = self._see_by_draw(pending, begun, top)
        out = self._closed.union(pull.arm for pull in pending)
        waiting = [
            index
            for index, arm in enumerate(view.arms)
            if promotions.next_level(self, arm) <= top and arm not in out
        ]
        dear = promotions.too_dear(self, [view.arms[index] for index in waiting])
        new, improvement = self._new_arm(view, begun, rng)
        if improvement > 0.0 or len(dear) < len(waiting):
            waiting = [index for index in waiting if view.arms[index] not in dear]
        # What a new arm's way to the target is worth for each unit of its cost.
        rate = _PATIENCE * improvement / self.price_from(-1, top)
        if waiting:
            arms = [view.arms[index] for index in waiting]
            levels = np.array([self.level_of(arm) for arm in arms])
            left = np.array([self.price_from(level, top) for level in levels.tolist()])
            left *= self.dearness(view.features[waiting], levels, top, arms)
            merits = view.improvement(view.means[waiting], view.spreads[waiting])
            rates = merits * [self.cheap_failures.chance(arm) for arm in arms] / left
            chosen = int(np.argmax(rates))
            if rates[chosen] >= rate:
                others = max(rate, *np.delete(rates, chosen), rates[chosen] / _MOST_WORTH)
                self.worth = float(rates[chosen] / others) if others > 0.0 else 1.0
                index = waiting[chosen]
                arm = view.arms[index]
                features = view.features[index : index + 1]
                return Pull(
                    arm, self._level(view, features, promotions.next_level(self, arm), [arm])
                )
        if new is None:
            return Pull(begun, self.lowest)
        self.point = self.space.at(new)
        return Pull(begun, self._level(view, self.space.cube_features(new[None, :]), self.lowest))

    @one_thread()
    def likely_best(self) -> list[int]:
        """Return the finished arms whose model interval reaches the leader's, best first."""
        if not self._can_model:
            return []
        view, finished = self._see(), set(self._finished)
        known = [index for index, arm in enumerate(view.arms) if arm in finished]
        if not known:
            return []
        known.sort(key=lambda index: (-view.means[index], index))
        floor = view.means[known[0]] - _REACH * view.spreads[known[0]]
        reaching = [i for i in known if view.means[i] + _REACH * view.spreads[i] >= floor]
        return [view.arms[index] for index in (reaching if len(reaching) > 1 else known[:2])]

    @one_thread()
    def chance(self, arm: int, epsilon: float, fresh: Mapping[int, Sequence[float]]) -> float:
        """See `SearchPolicy`; the mean over parameters that are drawn (see `LevelProcess`)."""
        if not self._can_model or arm not in self._finished or arm in self._unknown:
            return math.nan
        self._told_so_far.read(self._history)
        scale = self._told_so_far.scale(self.target, self._unknown)
        rows = self._told_so_far.rows(self.target + 1, self._unknown).most_telling(_MOST)
        values, counts = rows.values.copy(), rows.counts.copy()
        for other, new in fresh.items():
            here = (rows.arms == other) & (rows.levels == self.target)
            counts[here] += len(new)
            both = (self.mean(other, self.target) * rows.counts[here] + sum(new)) / counts[here]
            values[here] = scale.scores(both)
        features = self.space.features([self._points[k] for k in rows.arms.tolist()])
        data = LevelData(features, rows.levels, values, counts)
        rivals = [k for k in self._finished if k != arm and k in self._points]
        asked = self.space.features([self._points[k] for k in [arm, *rivals]])
        fitted = self._fit(self.target)

        def chance_by(process: LevelProcess, rng: np.random.Generator) -> float:
            process.condition(data)
            near = [0]
            if rivals:
                means, spreads = process.at_target(asked[1:])
                order = np.argsort(-(means + _REACH * spreads), kind="stable")
                near += (1 + order[:_MOST_RIVALS]).tolist()
            means, covariance = process.jointly_at_target(asked[near])
            drawn = rng.multivariate_normal(means, covariance, _OF_EACH, check_valid="ignore")
            worth = scale.values(drawn)
            return float((worth.max(axis=1) - worth[:, 0] <= epsilon).mean())

        rngs = [np.random.default_rng([self._seed, self._told, n, 2]) for n in range(_DRAWS)]
        return sum(chance_by(fitted.drawn(rng), rng) for rng in rngs) / _DRAWS

    @property
    def _can_model(self) -> bool:
        has_rows = not self._points.keys().isdisjoint(self._levels)
        return bool(self._finished and self.space.parameters and has_rows)

    def _known_level(self, pending: Sequence[Pull]) -> int:
        """Return the level that stands for the target: the highest with enough values, or -1."""
        if not pending:
            return self.target if self._can_model else -1
        enough = min(len(pending) + 1, FEWEST)  # the more is decided at once, the more
        for level in range(self.target, self.lowest - 1, -1):
            known = (k for k in self._values[level] if k in self._points and k not in self._out)
            if len(list(islice(known, enough))) == enough:
                return level if self.space.parameters else -1
        return -1

    def _see(self, level: int | None = None) -> View:
        top = self.target if level is None else level
        if top not in self._views or self._views[top][0] != self._changes:
            self._views[top] = (self._changes, self._new_view(self._fit(top), (), top))
        return self._views[top][1]

    def _expected(self, arms: Sequence[int], level: int) -> list[float]:
        """Return how good given arms are at the highest level with a few values, or their own."""
        if not self.space.parameters:
            return [self.mean(arm, level) for arm in arms]
        seen = [self._points[arm] for arm in self._given if self.level_of(arm) >= 0]
        self.space.learn_conditions(seen)
        known = (k for k in range(self.target, level, -1) if len(self._values[k]) >= _ENOUGH_KNOWN)
        features = self.space.features([self._points[arm] for arm in arms])
        means, _ = self._see(next(known, level)).process.at_target(features)
        return [float(mean) for mean in means]

    def _see_by_draw(self, pending: Sequence[Pull], begun: int, top: int) -> View:
        key = (self._changes, tuple(pending), begun)
        if self._drawn_view is None or self._drawn_view[0] != key:
            # The same random numbers for every step until the next arm is begun.
            process = self._fit(top).drawn(np.random.default_rng([self._seed, begun, 0, 1]))
            view = self._new_view(process, pending, top)
            # Of arms under way it is not known yet which parameters they are asked for.
            seen = [self._points[arm] for arm in view.arms if self.level_of(arm) >= 0]
            self.space.learn_conditions(seen)
            self._drawn_view = (key, view)
        return self._drawn_view[1]

    def _new_view(self, process: LevelProcess, pending: Sequence[Pull], top: int) -> View:
        rows = self._told_so_far.rows(top + 1, self._unknown).most_telling(_MOST)
        under_way = [pull for pull in pending if pull.arm in self._points]
        unfit = self._unfit
        without_value = self._points.keys() - self._levels.keys() - unfit
        arms = sorted({*rows.arms.tolist(), *without_value, *(pull.arm for pull in under_way)})
        features = self.space.features([self._points[arm] for arm in arms])
        where = {arm: index for index, arm in enumerate(arms)}
        told = features[[where[arm] for arm in rows.arms.tolist()]]
        data = LevelData(told, rows.levels, rows.values, rows.counts)
        process.condition(data)
        values = self._values[top]
        finished = [where[arm] for arm in arms if arm in values and arm not in unfit]
        if under_way:
            # What is under way, the latest of it, is taken to tell what is expected at its level.
            latest = under_way[-_MOST:]
            levels = np.array([min(pull.fidelity, top) for pull in latest])
            places = [where[pull.arm] for pull in latest]
            process.condition(
                LevelData(
                    np.vstack([data.features, features[places]]),
                    np.append(data.levels, levels),
                    np.append(data.values, process.expected(features[places], levels)),
                    np.append(rows.counts, np.ones_like(levels)),
                )
            )
            finished += [place for place, level in zip(places, levels, strict=True) if level == top]
        means, spreads = process.at_target(features)
        best = float(means[finished].max()) if finished else float(means.max())
        return View(process, features, arms, means, spreads, best)

    def _fit(self, top: int) -> LevelProcess:
        """Return the model, fitted anew at times that depend on the history alone."""
        self._told_so_far.read(self._history)
        n = len(self._history)
        fitted = min(n, self.n_first)
        while (following := math.ceil(_GROWTH * fitted)) <= n:
            fitted = following
        fitted = max(fitted, self._told_so_far.changed_at)
        key = (fitted, self.space.n_features, self._corrections)
        if top not in self._fits or self._fits[top][0] != key:
            process = LevelProcess(self.space.n_features, top + 1, self.space.numbers)
            told = Told(len(self.costs))
            told.read(self._history[:fitted])
            rows = told.rows(top + 1, self._unknown).most_telling(_MOST_FITTED)
            features = self.space.features([self._points[arm] for arm in rows.arms.tolist()])
            process.fit(LevelData(features, rows.levels, rows.values, rows.counts))
            self._fits[top] = key, process
        return self._fits[top][1]

    def _new_arm(
        self, view: View, begun: int, rng: np.random.Generator
    ) -> tuple[FloatArray | None, float]:
        """Return a new arm's place in the unit cube, None for any, and its gain at usual cost."""
        known = set(_keys(view.features))

        def merit(cube: FloatArray) -> FloatArray:
            features = self.space.cube_features(cube)
            means, spreads = view.process.at_target(features)
            is_new = [key not in known for key in _keys(features)]
            improvements = view.improvement(means, spreads) * is_new
            dearness = self.dearness(features, -1, self.target)
            fits = self.price_from(-1, self.target) * dearness <= self.affordable
            return improvements * fits / dearness

        best = np.argsort(-view.means, kind="stable")[:_GOOD]
        good = np.array([self.space.place(self._points[view.arms[i]], rng) for i in best])
        place, gain = best_place(merit, good, rng, self.space.ordered)
        # The same for every step until the arm is begun.
        at_random = np.random.default_rng([self._seed, begun]).random() < _RANDOM_SHARE
        return None if at_random else place, gain

    def _level(
        self, view: View, features: FloatArray, lowest: int, arms: Sequence[int] = ()
    ) -> int:
        """Return the level at which to evaluate next (see `View.best_level`)."""
        top = view.process.n_levels - 1
        if self.continues or lowest >= top:
            return lowest
        n = top + 1
        everywhere = np.repeat(features, n, axis=0)
        dearness = self.dearness(everywhere, -1, np.arange(n), [*arms] * n)
        return view.best_level(features, lowest, np.array(self.costs[:n]) * dearness)


def _keys(features: FloatArray) -> list[bytes]:
    return [row.tobytes() for row in np.round(features, _DIGITS) + 0.0]
