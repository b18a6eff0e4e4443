"""The best few configurations of a finished study, as its own values have them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import check_baseline, check_count, check_instance, shown
from mfhpo.certification.candidates import (
    Candidate,
    Shortlist,
    best_of,
    chosen_in_words,
    n_finalists,
)
from mfhpo.experiment import key_of
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import as_fidelity
from mfhpo.racing.text import cut, params_in_words
from mfhpo.search import EarlierResults
from mfhpo_optuna.study.arms import marked_baseline, outside_ranges
from mfhpo_optuna.study.distributions import contains, described, did_you_mean, levels_in, signs_of
from mfhpo_optuna.study.trials.attributes import (
    FIDELITY_KEY,
    certificate_of,
    is_feasible,
    pull_note,
    read_attribute,
)


@dataclass(frozen=True)
class StudyShortlist(Shortlist):
    """A shortlist of configurations with all that an objective asks for, a fidelity at its target.

    For its other fields see `Shortlist`.
    """

    first_number: int  # what the study's next trial would be called
    name: str  # of the study that records the evaluations
    replicate: str | None  # the parameter that sets the split or the seed, of no candidate
    fidelity: str | None  # the parameter that is at its target


@dataclass
class _Configuration:
    """A configuration and its trials, the fidelity and the replicate left out."""

    params: dict[str, Any]
    trials: list[tuple[Any, FrozenTrial]] = field(default_factory=list)  # with their levels

    def values(self) -> list[float]:
        """Return its values at the highest level at which it has any; none of a new baseline."""
        highest = max((level for level, _ in self.trials), default=None)
        return [_value(trial) for level, trial in self.trials if level == highest]

    def claim(self) -> float:
        values = self.values()
        return sum(values) / len(values)


def shortlist_of(
    study: optuna.Study,
    top: int | None,
    fidelity: str | Fidelity | None,
    replicate: str | None = None,
    baseline: Mapping[str, Any] | None = None,
) -> StudyShortlist:
    """Return the `top` best configurations; for arguments and errors see `certify`."""
    check_instance("study", study, optuna.Study, "an optuna.Study")
    check_baseline(baseline, has_index=False)
    if baseline is None and len(study.directions) == 1:
        baseline = marked_baseline(study)
    if top is not None:
        top = check_count("top", top, 2 if baseline is None else 1)
    if len(study.directions) > 1:
        raise ValueError(
            f"study {study.study_name!r} has {len(study.directions)} objectives, so it has no "
            f"single best trial; certify a study of one of them."
        )
    trials = study.get_trials(deepcopy=False)
    if fidelity is None:  # a race says which parameter it is
        fidelity = read_attribute(study, FIDELITY_KEY)
    chosen = None if fidelity is None else as_fidelity(fidelity)
    eligible = _eligible(trials, chosen)
    configurations = _group(study, eligible, chosen, replicate)
    today = None
    if configurations and baseline is not None:
        today = _baseline_in(study, configurations, baseline, chosen, replicate)
    n = len(configurations) + (today is not None and not today.trials)
    if n < 2:
        raise ValueError(
            f"study {study.study_name!r} has {len(configurations)} different configurations in "
            f"its {len(eligible)} trials that completed with a finite value, lie within their "
            f"ranges and break no constraint, at the target level; at least 2 are needed to tell "
            f"which is best. Run more trials first."
        )
    sign = signs_of(study)[0]
    # Sorting keeps the order of equals: the first trial comes first, as in `study.best_trial`.
    ranked = sorted(configurations, key=lambda configuration: -sign * configuration.claim())
    best = max(eligible, key=lambda trial: sign * _value(trial))
    [first] = [k for k, one in enumerate(ranked) if any(best is t for _, t in one.trials)]
    top, n_far = n_finalists([one.values() for one in ranked], sign, top)
    kept, luckiest, place_of_baseline = best_of(ranked, first, top, today)
    candidates = []
    for place, configuration in enumerate(kept):
        if not configuration.trials:
            candidates.append(Candidate("baseline", configuration.params, math.nan))
            continue
        trial = max((t for _, t in configuration.trials), key=lambda trial: sign * _value(trial))
        promise = sign * max(sign * value for value in configuration.values())
        name, best_value = f"trial {trial.number}", promise if place == luckiest else None
        candidates.append(
            Candidate(name, configuration.params, configuration.claim(), best_value=best_value)
        )
    searched = [trial for trial in trials if certificate_of(trial) is None]
    at = "" if chosen is None else f" at {chosen.name}={kept[0].params[chosen.name]!r}"
    by = "" if replicate is None else f" by {replicate}"
    n_best = min(top, len(ranked))
    and_baseline = which = ""
    if len(kept) > n_best:
        and_baseline, which = " and the baseline", f", {cut(params_in_words(kept[-1].params))}"
    why = "pruned, failed, infeasible, at lower levels or out of range"
    return StudyShortlist(
        candidates=tuple(candidates),
        luckiest=luckiest,
        about=f"the {n_best} best of {len(eligible)} completed trials{at}{and_baseline}",
        words=chosen_in_words(
            "search", len(searched), len(eligible), len(configurations), why, n_far
        ),
        own_values=tuple(tuple(one.values()) for one in kept),
        first_number=len(trials),
        name=f"{study.study_name}: best {n_best} of {len(eligible)}{at}{by}{and_baseline}{which}",
        baseline=place_of_baseline,
        replicate=replicate,
        fidelity=None if chosen is None else chosen.name,
    )


def as_results(source: Any) -> Any:
    """Return what a study has found as `EarlierResults`; anything else as it is."""
    if not isinstance(source, optuna.Study):
        return source
    noted = read_attribute(source, FIDELITY_KEY)
    fidelity = None if noted is None else as_fidelity(noted)
    trials = _eligible(source.get_trials(deepcopy=False), fidelity)
    found = _group(source, [trial for trial in trials if trial.params], fidelity, None)
    value = f"value of study {source.study_name!r}"  # no parameter has such a name
    rows = [{**one.params, value: one.claim()} for one in found]
    is_maximised = signs_of(source)[0] > 0.0
    return EarlierResults(rows, value=value, direction="maximize" if is_maximised else "minimize")


def _baseline_in(
    study: optuna.Study,
    configurations: Sequence[_Configuration],
    baseline: Mapping[str, Any],
    fidelity: Fidelity | None,
    replicate: str | None,
) -> _Configuration:
    """Return the baseline among a study's configurations, or as a new one."""
    asked: dict[str, BaseDistribution] = {}
    for configuration in configurations:
        for _, trial in configuration.trials:
            asked |= trial.distributions
    given = {name: value for name, value in baseline.items() if name != replicate}
    if fidelity is not None:
        given[fidelity.name] = levels_in(fidelity, asked[fidelity.name])[-1]
    everywhere = set.intersection(*(set(one.params) for one in configurations))
    if wrong := sorted((given.keys() - asked.keys()) | (everywhere - given.keys())):
        raise ValueError(
            f"baseline={shown(dict(baseline))} must have the parameters of study "
            f"{study.study_name!r}, {sorted(asked)}; look at {wrong[0]!r}."
        )
    for name, value in given.items():
        if not contains(asked[name], value):
            raise ValueError(
                f"baseline={shown(dict(baseline))}: {name}={shown(value)} is not a value of the "
                f"objective's {asked[name]}; widen it, so that the baseline can be evaluated."
            )
        given[name] = asked[name].to_external_repr(asked[name].to_internal_repr(value))
    key = key_of(given, described)
    same = (one for one in configurations if key_of(one.params, described) == key)
    return next(same, None) or _Configuration(given)


def _eligible(trials: Sequence[FrozenTrial], fidelity: Fidelity | None) -> list[FrozenTrial]:
    """Return the trials that completed within their ranges; of a race those at the target."""
    completed = [trial for trial in trials if _has_value(trial) and not outside_ranges(trial)]
    is_race = any(pull_note(trial) for trial in completed)
    eligible = []
    for trial in completed:
        if not is_feasible(trial) or (is_race and certificate_of(trial)):
            continue
        if is_race and fidelity is not None:
            if fidelity.name not in trial.params:
                continue
            target = levels_in(fidelity, trial.distributions[fidelity.name])[-1]
            if described(trial.params[fidelity.name]) != described(target):
                continue
        eligible.append(trial)
    return eligible


def _has_value(trial: FrozenTrial) -> bool:
    return (
        trial.state == TrialState.COMPLETE
        and trial.values is not None
        and len(trial.values) == 1
        and math.isfinite(trial.values[0])
    )


def _value(trial: FrozenTrial) -> float:
    assert trial.values is not None
    return float(trial.values[0])


def _group(
    study: optuna.Study,
    trials: Sequence[FrozenTrial],
    fidelity: Fidelity | None,
    replicate: str | None,
) -> list[_Configuration]:
    groups: dict[str, _Configuration] = {}
    for trial in trials:
        params = {name: value for name, value in trial.params.items() if name != replicate}
        level: Any = 0
        if fidelity is not None:
            if fidelity.name not in params:
                hint = did_you_mean(fidelity.name, params, "fidelity=")
                raise ValueError(
                    f"fidelity={shown(fidelity.name)} is no parameter of trial {trial.number} of "
                    f"study {study.study_name!r}, which has {sorted(params)}; leave it out to "
                    f"replay trials as they were.{hint}"
                )
            distribution = trial.distributions[fidelity.name]
            level = params[fidelity.name]
            if isinstance(distribution, CategoricalDistribution):
                level = [*map(described, distribution.choices)].index(described(level))
            params[fidelity.name] = levels_in(fidelity, distribution)[-1]
        group = groups.setdefault(key_of(params, described), _Configuration(params))
        group.trials.append((level, trial))
    if fidelity is not None:
        found = [group.params[fidelity.name] for group in groups.values()]
        targets = sorted({repr(described(target)): repr(target) for target in found}.values())
        if len(targets) > 1:
            raise ValueError(
                f"fidelity={shown(fidelity.name)} has several upper bounds in study "
                f"{study.study_name!r}: {', '.join(targets)}. Say which is the target: "
                f"fidelity=Fidelity({fidelity.name!r}, levels=[...]), whose last level counts."
            )
    return list(groups.values())
