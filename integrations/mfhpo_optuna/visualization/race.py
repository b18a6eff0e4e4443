"""The picture of a race among given arms: who won, who left when (of a search: `search.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo._validation import check_instance
from mfhpo.experiment import Answer
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.ledger import Result
from mfhpo_optuna.kinds.fidelity import FidelityKind
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.visualization import style, words
from mfhpo_optuna.visualization.finalists import draw_certificate
from mfhpo_optuna.visualization.reading import record_of, told
from mfhpo_optuna.visualization.replay import Evaluation, Replay
from mfhpo_optuna.visualization.search import draw_search

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST_ROWS = 25  # more would be too low to be read
_FINEST = 1 / 600  # of the axis of costs: gaps below it are not seen
_BAR = 0.66  # height of a bar, in rows

# Why an arm has left, in words, and the mark at the end of its lane.
_EXITS = {
    "eliminated": ("eliminated", "x-thin"),
    "failed": ("left by failing", "triangle-left"),
    "duplicate": ("same as another arm", "circle-open"),
}


def plot_race(study: optuna.Study, *, sampler: StudySampler | None = None) -> go.Figure:
    """Plot what every arm of a race is worth, when it left, and what it cost.

    Of a race among given arms: a row for each arm, the winner's on top, then the others in the
    order in which they left, the last one first. On the left, its mean and confidence interval, at
    the level where most was spent on it. On the right, when it left, and what each evaluation cost.

    Of a search by `SearchSampler`: on top, every evaluation over the cost. Below, the shortlist:
    what the search had seen of each configuration, and its mean in new evaluations with an
    interval. A double click shows outliers, too.

    Of a study by another sampler that `certify` has answered about: that shortlist.

    Parameters
    ----------
    study
        A study that was run with one of mfhpo's samplers; it need not have ended.
    sampler
        The sampler that it was run with, or one made with the same arguments. None: the study's,
        or the one that a study names that was loaded from a storage.

    Returns
    -------
    plotly.graph_objects.Figure
        The figure; ``figure.write_html("race.html")`` saves it. Its template is plotly's default
        (``plotly.io.templates.default``), and may be changed afterwards.

    Raises
    ------
    ImportError
        If plotly is not installed.
    TypeError
        If the sampler does not run races.
    ValueError
        If no trial has told the levels of the fidelity yet.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import IISESampler, plot_race, seed_of
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     epochs = trial.suggest_int("epochs", 1, 9)
    ...     return x**2 + np.random.default_rng(seed_of(trial)).normal(0, 0.1 / epochs)
    >>> study = optuna.create_study(sampler=IISESampler("epochs", arms=4, epsilon=0.1, seed=0))
    >>> study.optimize(objective)
    >>> plot_race(study).layout.xaxis2.title.text
    'cost of the race'
    """
    style.require_plotly("plot_race")
    check_instance("study", study, optuna.Study, "an optuna.Study")
    try:
        needed = "a sampler that runs races, such as IISESampler"
        known, answer = told(study, sampler, FidelityKind, "plot_race", needed)
    except TypeError:
        record = None if sampler is not None else record_of(study)
        if record is None or record.answer is None:
            raise
        maximise = study.direction == optuna.study.StudyDirection.MAXIMIZE
        return draw_certificate(record.answer, 1.0 if maximise else -1.0)
    return draw_search(known, answer) if known.searches else _draw(known, answer)


@dataclass(frozen=True)
class _Row:
    """One arm: what it is worth, and what was spent on it until it left."""

    arm: int
    mean: float  # NaN if it gave no value
    interval: tuple[float, float]  # infinite if there are too few evaluations for one
    level: int
    left_at: float  # what the race had cost then; the race's cost if the arm is in it still
    exit: str | None  # a key of `_EXITS`
    paid: tuple[tuple[int, float, float], ...]  # stretches of the race's cost: level, from, to
    text: str  # what there is to say about it


class _RaceReplay(Replay):
    """A race's evaluations, and of each arm that left, what had been paid then, and why it left."""

    def __init__(self, known: StudyExperiment) -> None:
        self.exits: dict[int, tuple[float, str]] = {}
        super().__init__(known)
        self._note_exits(known.experiment.runner, ())  # what happened after the last pull

    def _learn(self, runner: Runner, learned: list[Result]) -> None:
        super()._learn(runner, learned)
        new = self.evaluations[-len(learned) :]
        self._note_exits(runner, [evaluation.arm for evaluation in new if evaluation.failed])

    def _note_exits(self, runner: Any, failed: Sequence[int]) -> None:
        arms, active = runner.configurations, set(runner.policy.active.tolist())
        for arm in active & self.exits.keys():
            del self.exits[arm]  # an audit put it back
        for arm in set(range(len(arms))) - active - self.exits.keys():
            why = "eliminated" if arms.owner(arm) == arm else "duplicate"
            self.exits[arm] = self.cost, "failed" if arm in failed else why


def _draw(known: StudyExperiment, answer: Answer) -> Any:
    replay = _RaceReplay(known)
    ranking = _ranking(replay, answer.arm)
    rows = [_row(replay, answer, arm) for arm in ranking[:_MOST_ROWS]]
    first, has_winner = rows[0], answer.arm is not None
    reach = words.span((first.mean, *first.interval), [row.mean for row in rows], known.sign)
    figure = style.new_figure(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.5, 0.5], horizontal_spacing=0.03
    )
    lanes = style.rounded([row.left_at for row in rows])
    grey = style.faded(style.QUIET, 0.22)
    _draw_bars(figure, lanes, range(len(rows)), grey, name="in the race", hoverinfo="skip")
    levels = [words.level_text(known, level) for level in range(len(known.trials.levels))]
    for level, name in enumerate(levels):
        colour = style.level_colour(level, len(levels))
        symbol = "circle" if level == len(levels) - 1 else "circle-open"
        _draw_worth(figure, rows, level, colour, symbol, reach)
        _draw_paid(figure, rows, level, colour, name)
    if has_winner and math.isfinite(first.mean):
        style.star(
            figure, first.mean, first.interval, first.text, style.LEFT, name=f"arm {first.arm}"
        )
    _draw_exits(figure, rows)
    style.head(figure, "What it is worth")
    style.head(figure, "When it left, and its cost", panel=2)
    style.lay_out(
        figure, _title(known, answer), panels=max(24, min(44, 480 // len(rows))) * len(rows)
    )
    figure.update_layout(barmode="overlay")
    worth = f"mean ({words.better(known.sign)})"
    figure.update_xaxes(title_text=worth, range=list(reach), zeroline=False, nticks=6, **style.LEFT)
    omitted = len(ranking) - len(rows)
    more = f" ({omitted} arms are not shown)" if omitted else ""
    unit = " in seconds" if known.kind.in_seconds else ""
    end = 1.02 * replay.cost
    paid = f"cost of the race{unit}{more}"
    figure.update_xaxes(title_text=paid, range=[0.0, end], nticks=6, **style.RIGHT)
    for panel in (style.LEFT, style.RIGHT):
        style.label_rows(figure, [f"arm {row.arm}" for row in rows], has_winner, panel)
    return figure


def _ranking(replay: _RaceReplay, winner: int | None) -> list[int]:
    def key(arm: int) -> tuple[bool, float, float]:
        _, count, mean, _ = _standing(replay.known, arm)
        left_at, _ = replay.exits.get(arm, (math.inf, ""))
        return arm != winner, -left_at, -replay.known.sign * mean if count else math.inf

    return sorted(range(len(replay.known.experiment.runner.configurations)), key=key)


def _standing(known: StudyExperiment, arm: int) -> tuple[int, int, float, float]:
    """Return an arm's level, values, mean and half-width, at the level where most was spent on it.

    Levels where its interval is finite come first.
    """
    levels, kind = known.trials.levels, known.kind
    found = [(level, *known.policy.summary(arm, level)) for level in range(len(levels))]

    def key(at: tuple[int, int, float, float]) -> tuple[bool, float, int]:
        level, count, _, half = at
        return bool(count) and math.isfinite(half), count * kind.cost_of(level, levels), level

    level, count, mean, half = max(found, key=key)
    return level, count, known.sign * mean, half


def _row(replay: _RaceReplay, answer: Answer, arm: int) -> _Row:
    known, cost = replay.known, replay.cost
    level, count, mean, half = _standing(known, arm)
    left_at, reason = replay.exits.get(arm, (cost, None))
    own = [evaluation for evaluation in replay.evaluations if evaluation.arm == arm]
    spent = sum(evaluation.end - evaluation.begin for evaluation in own)
    if arm == answer.arm and words.is_at_target(known, answer):
        mean, interval = answer.mean, answer.interval  # of all levels together
    else:
        mean, interval = mean if count else math.nan, (mean - half, mean + half)
    lines = [f"arm {arm}: no value"]
    if count:
        ends = words.between(interval) or "(too few values for an interval)"
        lines = [
            f"arm {arm}: {mean:.4g} {ends}",
            f"{words.trials_text(count)} at {words.level_text(known, level)}",
        ]
    lines.append(f"cost {spent:,.6g}, {spent / cost:.0%} of the race" if cost else "not begun")
    if reason:
        lines.append(f"{_EXITS[reason][0]} when the race had cost {left_at:,.6g}")
    text = style.hover([*lines, *words.params_lines(known.values_of(arm).params)])
    paid = _stretches(own, _FINEST * cost)
    return _Row(arm, mean, interval, level, left_at, reason, paid, text)


def _stretches(own: Sequence[Evaluation], finest: float) -> tuple[tuple[int, float, float], ...]:
    """Return an arm's costs, those at one level joined where no gap would be seen."""
    joined: list[tuple[int, float, float]] = []
    for evaluation in own:
        level, begin = evaluation.fidelity, evaluation.begin
        if joined and joined[-1][0] == level and begin - joined[-1][2] <= finest:
            begin = joined.pop()[1]
        joined.append((level, begin, evaluation.end))
    return tuple(joined)


def _title(known: StudyExperiment, answer: Answer) -> tuple[str, ...]:
    of = f"of {len(known.experiment.runner.configurations)}"
    headline = f"A race {of} arms" if answer.arm is None else f"Arm {answer.arm} {of}"
    return words.answer_title(known, answer, headline)


def _draw_worth(
    figure: Any,
    rows: Sequence[_Row],
    level: int,
    colour: str,
    symbol: str,
    reach: tuple[float, float],
) -> None:
    shown = [
        (place, row)
        for place, row in enumerate(rows)
        if row.level == level and math.isfinite(row.mean)
    ]
    low, high = reach

    def mark(mean: float) -> str:
        """Return an arrow where the mean lies beyond the axis."""
        return "triangle-left" if mean < low else "triangle-right" if mean > high else symbol

    means = style.rounded([min(max(row.mean, low), high) for _, row in shown])
    places, texts = [place for place, _ in shown], [row.text for _, row in shown]
    bars = style.error_bars([(row.mean, row.interval) for _, row in shown], 2.5)
    marker = {"color": colour, "size": 8, "symbol": [mark(row.mean) for _, row in shown]}
    options = {"cliponaxis": False, "legendgroup": f"level {level}"} | style.LEFT
    style.draw(figure, means, places, error_x=bars, text=texts, marker=marker, **options)


def _draw_paid(figure: Any, rows: Sequence[_Row], level: int, colour: str, name: str) -> None:
    stretches = [
        (place, row.text, begin, end)
        for place, row in enumerate(rows)
        for at, begin, end in row.paid
        if at == level
    ]
    places, texts, begins, ends = zip(*stretches, strict=True) if stretches else ((),) * 4
    lengths = style.rounded([end - begin for begin, end in zip(begins, ends, strict=True)])
    options = {"base": style.rounded(begins), "text": texts, "textposition": "none"}
    group = f"level {level}"
    _draw_bars(
        figure, lengths, places, colour, name=style.literal(name), legendgroup=group, **options
    )


def _draw_bars(
    figure: Any, lengths: Sequence[float], places: Sequence[int], colour: str, **options: Any
) -> None:
    look = {"orientation": "h", "width": _BAR, "marker": {"color": colour, "line_width": 0}}
    figure.add_bar(x=lengths, y=list(places), **look, **options, **style.RIGHT)


def _draw_exits(figure: Any, rows: Sequence[_Row]) -> None:
    for reason, (name, symbol) in _EXITS.items():
        gone = [(place, row) for place, row in enumerate(rows) if row.exit == reason]
        if gone:
            costs = style.rounded([row.left_at for _, row in gone])
            places, texts = [place for place, _ in gone], [row.text for _, row in gone]
            line = {"color": style.QUIET, "width": 2}
            marker = {"symbol": symbol, "size": 8, "color": style.QUIET, "line": line}
            look = {"marker": marker, "cliponaxis": False, "name": name} | style.RIGHT
            style.draw(figure, costs, places, text=texts, **look)
