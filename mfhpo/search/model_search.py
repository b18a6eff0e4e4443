"""Search by a model of all levels: what to begin, and which arms are worth going on with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from mfhpo.native.threads import one_thread
from mfhpo.problem import Pull
from mfhpo.search.acquisition import best_place, expected_improvement
from mfhpo.search.policy import Begin, SearchPolicy
from mfhpo.search.process import LevelData, LevelProcess
from mfhpo.search.score import scores

__all__ = ["ModelSearch"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Observations that the model is conditioned on, and that its parameters are fitted to: the time
# for a suggestion stays the same however many trials there are.
_MOST, _MOST_FITTED = 300, 200
_LATEST = 30  # arms that are kept for being new
_WHOLE = 25  # arms of which all levels are kept
_GROWTH = 1.25  # of the observations, between two fits
_GOOD = 5  # arms around which better ones are sought
_DIGITS = 6  # to which configurations that are the same agree
_REACH = 2.0  # standard deviations in which an arm's value may lie
# Equally likely outcomes of a step, in standard deviations, the best first.
_OUTCOMES = -ndtri((np.arange(50) + 0.5) / 50)


@dataclass(frozen=True)
class _Rows:
    """Observations before it is said which configurations they are of, arrays of one length."""

    arms: IntArray
    levels: IntArray
    values: FloatArray
    counts: IntArray


@dataclass(frozen=True)
class _View:
    """The model after some observations, and the arms that it knows: not all, if there are many."""

    process: LevelProcess
    features: FloatArray
    arms: list[int]
    means: FloatArray
    spreads: FloatArray
    best: float

    def improvement(self, means: FloatArray, spreads: FloatArray) -> FloatArray:
        """What may be gained at the target, less what noise hides of it."""
        return expected_improvement(means, spreads, self.best, self.process.target_noise)


class ModelSearch(SearchPolicy):
    """Begins the arm of which most is expected, and goes on with those that keep their promise.

    One Gaussian process (`LevelProcess`) models the values at all levels; how much a cheap level
    says of the target is part of what it learns, so that a misleading one is not followed, and so
    is the scale on which a number acts. The next step is the one with the largest expected
    improvement at the target for what it costs to get there: beginning a new arm, or going on with
    one. Arms are never stopped for good: one that is left waits until nothing better is in sight
    (freezing and thawing).

    Each new arm is chosen by a model of its own, with parameters drawn from their posterior
    (Thompson sampling of the model), which also says until then what to go on with: the most
    probable model is too sure of itself, and a search that follows it alone stays where it is.
    Which finished arm is best is said by the most probable one.

    Parameters
    ----------
    costs, continues, initial, seed
        See `SearchPolicy`.
    patience
        The share of its expected improvement that a new arm counts for. Below 1, arms that were
        begun are preferred to new ones, whose promise is the largest of many guesses and is less
        to be relied on.
    random_share
        Share of new arms that are drawn at random, against a model that is wrong.

    References
    ----------
    Swersky, Snoek and Adams, Freeze-thaw Bayesian optimization, arXiv 1406.3896, 2014, for going
    on with arms by what a model expects of them.

    Examples
    --------
    >>> from mfhpo.problem import Observation
    >>> from mfhpo.search import Numeric, SearchSpace
    >>> search = ModelSearch(costs=(1.0, 3.0), continues=True, initial=4)
    >>> search.space = SearchSpace({"x": Numeric()})
    >>> rng, points = np.random.default_rng(0), []
    >>> for _ in range(40):
    ...     step = search.ask(len(points))
    ...     if isinstance(step, Begin):
    ...         points.append(step.point or {"x": float(rng.random())})
    ...         search.describe(len(points) - 1, points[-1])
    ...         step = Pull(len(points) - 1, step.fidelity)
    ...     bias = 0.1 * (step.fidelity == 0)
    ...     value = -((points[step.arm]["x"] - 0.3 - bias) ** 2)
    ...     search.tell(step, Observation(value))
    >>> abs(points[search.leader()]["x"] - 0.3) < 0.05
    True
    """

    def __init__(
        self,
        costs: Sequence[float],
        *,
        continues: bool = False,
        initial: int | None = None,
        patience: float = 0.75,
        random_share: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(costs, continues=continues, initial=initial, seed=seed)
        if not 0.0 < patience <= 1.0:
            raise ValueError(f"patience must be in (0, 1], got {patience!r}.")
        if not 0.0 <= random_share <= 1.0:
            raise ValueError(f"random_share must be from 0 to 1, got {random_share!r}.")
        self._patience = patience
        self._random_share = random_share
        self._process: LevelProcess | None = None
        self._fitted = (0, 0, 0)
        self._view: tuple[int, _View] | None = None
        self._drawn_view: tuple[object, _View] | None = None

    # Asking.

    @one_thread()
    def ask(self, begun: int, pending: Sequence[Pull] = ()) -> Begin | Pull:
        """What to evaluate next."""
        step = self._first_arms(begun, pending)
        if step is not None:
            return step
        if not self.finished_arms() or not self.space.parameters or not self._points:
            return Begin(self.lowest, None)
        rng = np.random.default_rng([self._seed, begun, self._told])
        view = self._see_by_draw(pending, begun)
        busy = {pull.arm for pull in pending}
        waiting = [
            index
            for index, arm in enumerate(view.arms)
            if self.level_of(arm) < self.target and arm not in busy and arm not in self._unfit
        ]
        new, improvement = self._new_arm(view, begun, rng)
        # What a new arm's way to the target is worth for each unit of its cost.
        rate = self._patience * improvement / self.price_from(-1, self.target)
        if waiting:
            left = [
                self.price_from(self.level_of(view.arms[index]), self.target) for index in waiting
            ]
            merits = view.improvement(view.means[waiting], view.spreads[waiting])
            rates = merits / np.array(left)
            chosen = int(np.argmax(rates))
            if rates[chosen] >= rate:
                index = waiting[chosen]
                arm = view.arms[index]
                features = view.features[index : index + 1]
                lowest = max(self.level_of(arm) + 1, self.lowest)
                return Pull(arm, self._level(view, features, lowest))
        if new is None:
            return Begin(self.lowest, None)
        features = self.space.cube_features(new[None, :])
        level = self._level(view, features, self.lowest)
        return Begin(level, self.space.at(new))

    @one_thread()
    def leader(self) -> int | None:
        """The finished arm with the best mean by the model, which evens out its noise."""
        finished = self.finished_arms()
        if not finished or not self.space.parameters or not self._points:
            return super().leader()
        view = self._see()
        where = {arm: index for index, arm in enumerate(view.arms)}
        known = [arm for arm in finished if arm in where]
        if not known:
            return super().leader()
        return max(known, key=lambda arm: (view.means[where[arm]], -arm))

    @one_thread()
    def contenders(self, most: int) -> list[int]:
        """The finished arms whose interval by the model reaches the leader's, at most so many."""
        finished = self.finished_arms()
        if not finished or not self.space.parameters or not self._points:
            return super().contenders(most)
        view = self._see()
        where = {arm: index for index, arm in enumerate(view.arms)}
        known = [where[arm] for arm in finished if arm in where]
        if not known:
            return super().contenders(most)
        known.sort(key=lambda index: (-view.means[index], index))
        floor = view.means[known[0]] - _REACH * view.spreads[known[0]]
        reaching = [i for i in known if view.means[i] + _REACH * view.spreads[i] >= floor]
        chosen = reaching if len(reaching) > 1 else known[:2]
        return [view.arms[index] for index in chosen[:most]]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `SearchPolicy`."""
        super().load_state_dict(state)
        self._process = None  # of what was known before

    # The model.

    def _see(self) -> _View:
        """What the most probable model says."""
        if self._view is None or self._view[0] != self._changes:
            self._view = (self._changes, self._new_view(self._fit(), ()))
        return self._view[1]

    def _see_by_draw(self, pending: Sequence[Pull], begun: int) -> _View:
        """What the model says by which the next arm is chosen."""
        key = (self._changes, tuple(pending), begun)
        if self._drawn_view is None or self._drawn_view[0] != key:
            # The same random numbers for every step until the next arm is begun.
            process = self._fit().drawn(np.random.default_rng([self._seed, begun, 0, 1]))
            view = self._new_view(process, pending)
            # Of arms under way it is not known yet which parameters they are asked for.
            seen = [self._points[arm] for arm in view.arms if self.level_of(arm) >= 0]
            self.space.learn_conditions(seen)
            self._drawn_view = (key, view)
        return self._drawn_view[1]

    def _new_view(self, process: LevelProcess, pending: Sequence[Pull]) -> _View:
        rows = _most_telling(self._rows(len(self._history)), _MOST)
        under_way = [pull.arm for pull in pending if pull.arm in self._points]
        without_value = self._points.keys() - set().union(*self._values) - self._unfit
        arms = sorted({*rows.arms.tolist(), *without_value, *under_way})
        features = self.space.features([self._points[arm] for arm in arms])
        data = self._data(rows)
        process.condition(data)
        means, spreads = process.at_target(features)
        where = {arm: index for index, arm in enumerate(arms)}
        ours = [where[arm] for arm in under_way]
        if ours:
            # Arms under way are taken to end as expected, so that the next one is another.
            process.condition(
                LevelData(
                    np.vstack([data.features, features[ours]]),
                    np.append(data.levels, np.full(len(ours), self.target)),
                    np.append(data.values, means[ours]),
                    np.append(rows.counts, np.ones(len(ours), dtype=np.int64)),
                )
            )
            means, spreads = process.at_target(features)
        finished = [where[arm] for arm in self.finished_arms() if arm in where]
        best = float(means[finished + ours].max()) if finished + ours else float(means.max())
        return _View(process, features, arms, means, spreads, best)

    def _rows(self, first: int) -> _Rows:
        """What was told first, so many times, as the model takes it."""
        told: list[dict[int, list[float]]] = [{} for _ in self.costs]
        failed = []
        for arm, level, value in self._history[:first]:
            if arm not in self._points:
                continue
            if value is None:
                failed.append(arm)
            else:
                told[level].setdefault(arm, []).append(value)
        arms, levels, values, counts = [], [], [], []
        for level, here in enumerate(told):
            if here:
                arms += list(here)
                levels += [level] * len(here)
                counts += [len(several) for several in here.values()]
                means = [sum(several) / len(several) for several in here.values()]
                values += scores(np.array(means)).tolist()
        worst = min(values, default=0.0)
        for arm in failed:  # what fails is as good as the worst that was seen
            arms.append(arm)
            levels.append(self.target)
            values.append(worst)
            counts.append(1)
        return _Rows(
            np.array(arms, dtype=np.int64),
            np.array(levels, dtype=np.int64),
            np.array(values),
            np.array(counts, dtype=np.int64),
        )

    def _data(self, rows: _Rows) -> LevelData:
        features = self.space.features([self._points[arm] for arm in rows.arms.tolist()])
        return LevelData(features, rows.levels, rows.values, rows.counts)

    def _fit(self) -> LevelProcess:
        """The model, fitted anew whenever there are so many more values than last time.

        When that is depends on their number alone, so that a search that is loaded or replayed goes
        on as the one that was not.
        """
        n = len(self._history)
        fitted = min(n, self._initial)
        while (following := math.ceil(_GROWTH * fitted)) <= n:
            fitted = following
        key = (fitted, self.space.n_features, self._corrections)
        if self._process is None or self._fitted != key:
            self._process = LevelProcess(self.space.n_features, len(self.costs), self.space.numbers)
            self._process.fit(self._data(_most_telling(self._rows(fitted), _MOST_FITTED)))
            self._fitted = key
        return self._process

    # Choosing.

    def _new_arm(
        self, view: _View, begun: int, rng: np.random.Generator
    ) -> tuple[FloatArray | None, float]:
        """A new arm's place in the unit cube, None for any, and its expected improvement."""
        known = _rows_as_keys(view.features)

        def merit(cube: FloatArray) -> FloatArray:
            features = self.space.cube_features(cube)
            means, spreads = view.process.at_target(features)
            is_new = ~np.isin(_rows_as_keys(features), known)
            return view.improvement(means, spreads) * is_new

        best = np.argsort(-view.means, kind="stable")[:_GOOD]
        good = np.array([self.space.place(self._points[view.arms[i]], rng) for i in best])
        place = best_place(merit, good, rng, self.space.ordered)
        # The same for every step until the arm is begun.
        at_random = np.random.default_rng([self._seed, begun]).random() < self._random_share
        return None if at_random else place, float(merit(place[None, :])[0])

    def _level(self, view: _View, features: FloatArray, lowest: int) -> int:
        """The level at which to evaluate next.

        Where evaluations go on from the last one, each level is passed anyway, and the next one is
        as good a place to reconsider as any. Where they begin from scratch, it is the level by
        which most is gained for the cost, if many such arms are evaluated there and only the best
        of them at the target.
        """
        if self.continues or lowest >= self.target:
            return lowest
        levels = np.arange(lowest, self.target)
        costs = np.array([self.costs[level] for level in levels])
        repeated = np.repeat(features, len(levels), axis=0)
        mean, moved, left = view.process.learnt_at(repeated, levels)
        means = mean[:, None] + moved[:, None] * _OUTCOMES
        spreads = np.repeat(left[:, None], len(_OUTCOMES), axis=1)
        improvements = view.improvement(means, spreads)
        share = np.arange(1, len(_OUTCOMES) + 1) / len(_OUTCOMES)
        gains = np.cumsum(improvements, axis=1) / len(_OUTCOMES)
        rates = (gains / (costs[:, None] + share * self.costs[-1])).max(axis=1)
        now, spread = view.process.at_target(features)
        at_once = float(view.improvement(now, spread)[0]) / self.costs[-1]
        return int(levels[np.argmax(rates)]) if rates.max() > at_once else self.target


def _rows_as_keys(features: FloatArray) -> npt.NDArray[np.void]:
    """One comparable value for each row, shape (n,), alike for rows that are the same."""
    rounded = np.ascontiguousarray(np.round(features, _DIGITS) + 0.0)
    keys: npt.NDArray[np.void] = rounded.view(f"V{rounded.itemsize * rounded.shape[1]}")[:, 0]
    return keys


def _most_telling(rows: _Rows, most: int) -> _Rows:
    """The rows to keep of too many.

    An arm's value at its highest level says nearly all that its values say of the target, so the
    lower ones are kept of a few arms alone, which show how levels go together. Arms that came
    furthest go first, and among these the latest and those with the best values; of the others the
    latest are kept, for their best values are their luckiest.
    """
    if len(rows.values) <= most:
        return rows
    arms, which = np.unique(rows.arms, return_inverse=True)
    reached = np.full(len(arms), -1)
    np.maximum.at(reached, which, rows.levels)
    at_top = rows.levels == reached[which]
    value = np.full(len(arms), -np.inf)
    value[which[at_top]] = rows.values[at_top]
    value[reached < reached.max()] = 0.0
    latest = arms > arms[-1] - _LATEST
    place = np.empty(len(arms), dtype=np.int64)
    place[np.lexsort((-arms, -value, ~latest, -reached))] = np.arange(len(arms))
    kept = at_top | (place[which] < _WHOLE)
    order = np.lexsort((~at_top, place[which], ~kept))
    chosen = np.sort(order[: min(most, int(kept.sum()))])
    return _Rows(rows.arms[chosen], rows.levels[chosen], rows.values[chosen], rows.counts[chosen])
