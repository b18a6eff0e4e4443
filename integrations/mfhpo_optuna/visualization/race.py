"""The picture of a race among given arms: who won, who left when (of a search: `search.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import optuna

from mfhpo.experiment import Answer
from mfhpo.racing.text import name_in_words
from mfhpo_optuna.samplers.fidelity_kinds import FidelityKind
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.distributions import signs_of
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.visualization import style
from mfhpo_optuna.visualization.reading import Evaluation, record_of, told, told_again
from mfhpo_optuna.visualization.search import draw_certificate, draw_search

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST_ROWS = 25  # more would be too low to be read
_BAR = 0.4  # height of a bar, in rows

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
        One like the sampler that it was run with. None: the study's, or the one that it names.

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
    """
    try:
        needed = "a sampler that runs races, such as IISESampler"
        known, answer = told(study, sampler, FidelityKind, "plot_race", needed)
    except TypeError:
        if sampler is not None or not isinstance(study, optuna.Study):
            raise
        record = record_of(study)
        if record is None or record.answer is None:
            raise
        return draw_certificate(record.answer, signs_of(study)[0])
    return draw_search(known, answer) if known.searches else _draw(known, answer)


@dataclass(frozen=True)
class _Row:
    """One arm: what it is worth, and what was spent on it until it left."""

    place: int  # from the top
    arm: int
    mean: float  # NaN if it gave no value
    interval: tuple[float, float]  # infinite if there are too few evaluations for one
    level: int
    left_at: float  # what the race had cost then; the race's cost if the arm is in it still
    exit: str | None  # a key of `_EXITS`
    paid: Sequence[tuple[int, float, float]]  # stretches of the race's cost: level, from, to
    text: str  # what there is to say about it


class _Race:
    """A race's evaluations, and of each arm that left, what had been paid then, and why it left."""

    def __init__(self, known: StudyExperiment, answer: Answer) -> None:
        self.known, self.answer, self.cost = known, answer, 0.0
        self.evaluations: list[Evaluation] = []
        self.exits: dict[int, tuple[float, str]] = {}
        # At the end, what happened after the last pull.
        for runner, new in chain(told_again(known), [(known.experiment.runner, [])]):
            self.evaluations += new
            self.cost = new[-1].end if new else self.cost
            failed = {evaluation.arm for evaluation in new if evaluation.failed}
            arms, active = runner.configurations, set(runner.policy.active.tolist())
            for arm in active & self.exits.keys():
                del self.exits[arm]  # an audit put it back
            for arm in set(range(len(arms))) - active - self.exits.keys():
                why = "eliminated" if arms.owner(arm) == arm else "duplicate"
                self.exits[arm] = self.cost, "failed" if arm in failed else why


def _draw(known: StudyExperiment, answer: Answer) -> Any:
    race = _Race(known, answer)

    def rank(arm: int) -> tuple[bool, float, float]:
        _, count, mean, _ = _standing(known, arm)
        left_at, _ = race.exits.get(arm, (math.inf, ""))
        return arm != answer.arm, -left_at, -known.sign * mean if count else math.inf

    ranking = sorted(range(len(known.experiment.runner.configurations)), key=rank)
    rows = [_row(race, arm, place) for place, arm in enumerate(ranking[:_MOST_ROWS])]
    first, has_winner = rows[0], answer.arm is not None
    reach = style.span((first.mean, *first.interval), [row.mean for row in rows], known.sign)
    figure = style.new_figure(
        rows=1, cols=2, shared_yaxes=True, column_widths=[0.5, 0.5], horizontal_spacing=0.03
    )
    lanes = [row.left_at for row in rows]
    grey = style.faded(style.QUIET, 0.22)
    _draw_bars(figure, lanes, range(len(rows)), grey, name="in the race", hoverinfo="skip")
    n_levels = len(known.trials.levels)
    for level in range(n_levels):
        _draw_level(figure, rows, level, n_levels, style.level_text(known, level))
    if has_winner and math.isfinite(first.mean):
        name = name_in_words(known.values_of(first.arm).params, first.arm)
        style.star(figure, (first.mean, first.interval), first.text, style.LEFT, name=name)
    for reason, (name, symbol) in _EXITS.items():
        if gone := [row for row in rows if row.exit == reason]:
            line = {"color": style.QUIET, "width": 2}
            marker = {"symbol": symbol, "size": 8, "color": style.QUIET, "line": line}
            look = {"text": [row.text for row in gone], "marker": marker, "cliponaxis": False}
            costs, places = [row.left_at for row in gone], [row.place for row in gone]
            style.draw(figure, costs, places, name=name, **look, **style.RIGHT)
    style.head(figure, "What it is worth")
    style.head(figure, "When it left, and its cost", panel=2)
    height = max(34, min(44, 480 // len(rows))) * len(rows)
    style.lay_out(figure, style.answer_title(answer), panels=height, left=14)
    figure.update_layout(barmode="overlay")
    worth = f"mean ({style.better(known.sign)})"
    figure.update_xaxes(title_text=worth, range=list(reach), zeroline=False, nticks=6, **style.LEFT)
    omitted = len(ranking) - len(rows)
    more = f" ({omitted} more are not shown)" if omitted else ""
    unit = " in seconds" if known.kind.in_seconds else ""
    ends, paid = [0.0, 1.02 * race.cost], f"cost of the race{unit}{more}"
    figure.update_xaxes(title_text=paid, range=ends, nticks=6, **style.RIGHT)
    names = [name_in_words(known.values_of(row.arm).params, row.arm) for row in rows]
    style.label_rows(figure, names, has_winner, 1)
    return figure


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


def _row(race: _Race, arm: int, place: int) -> _Row:
    known, answer, cost = race.known, race.answer, race.cost
    level, count, mean, half = _standing(known, arm)
    left_at, reason = race.exits.get(arm, (cost, None))
    own = [evaluation for evaluation in race.evaluations if evaluation.arm == arm]
    spent = sum(evaluation.end - evaluation.begin for evaluation in own)
    mean, interval = mean if count else math.nan, (mean - half, mean + half)
    is_at_target = not known.trials.levels or answer.level == known.trials.levels[-1]
    if arm == answer.arm and (answer.certified or is_at_target):
        mean, interval = answer.mean, answer.interval  # of all levels together
    lines = ["no value"]
    if count:
        ends = style.between(interval) or "(too few values for an interval)"
        at = style.level_text(known, level)
        lines = [f"{mean:.4g} {ends}", f"{style.counted(count, 'trial')} at {at}"]
    lines.append(f"cost {spent:,.6g}, {spent / cost:.0%} of the race" if cost else "not begun")
    if reason:
        lines.append(f"{_EXITS[reason][0]} when the race had cost {left_at:,.6g}")
    text = style.hover([*lines, *style.params_lines(known.values_of(arm).params)])
    paid = _stretches(own)
    return _Row(place, arm, mean, interval, level, left_at, reason, paid, text)


def _stretches(own: Sequence[Evaluation]) -> list[tuple[int, float, float]]:
    """Return an arm's costs, those at one level joined where one follows the other."""
    joined: list[tuple[int, float, float]] = []
    for evaluation in own:
        level, begin = evaluation.fidelity, evaluation.begin
        if joined and joined[-1][::2] == (level, begin):
            begin = joined.pop()[1]
        joined.append((level, begin, evaluation.end))
    return joined


def _draw_level(figure: Any, rows: Sequence[_Row], level: int, n_levels: int, name: str) -> None:
    colour, group = style.level_colour(level, n_levels), {"legendgroup": f"level {level}"}
    symbol = "circle" if level == n_levels - 1 else "circle-open"
    shown = [row for row in rows if row.level == level and math.isfinite(row.mean)]
    look: dict[str, Any] = {
        "text": [row.text for row in shown],
        "error_x": style.error_bars([(row.mean, row.interval) for row in shown], 2.5),
        "marker": {"color": colour, "size": 8, "symbol": symbol},
    }
    means, places = [row.mean for row in shown], [row.place for row in shown]
    style.draw(figure, means, places, **look, **group, **style.LEFT)
    paid = [(row, begin, end) for row in rows for at, begin, end in row.paid if at == level]
    look = {
        "base": style.rounded([begin for _, begin, _ in paid]),
        "text": [row.text for row, _, _ in paid],
        "textposition": "none",
        "name": style.literal(name),
    }
    lengths, places = [end - begin for _, begin, end in paid], [row.place for row, *_ in paid]
    _draw_bars(figure, lengths, places, colour, **look, **group)


def _draw_bars(
    figure: Any, lengths: Sequence[float], places: Sequence[int], colour: str, **options: Any
) -> None:
    look = {"orientation": "h", "width": _BAR, "marker": {"color": colour, "line_width": 0}}
    figure.add_bar(x=style.rounded(lengths), y=list(places), **look, **options, **style.RIGHT)
