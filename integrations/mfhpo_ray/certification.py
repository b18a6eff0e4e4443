"""`certify`: what the winner of a finished experiment is really worth."""

from __future__ import annotations

import logging
import math
import posixpath
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from ray import tune
from ray.tune import ExperimentAnalysis, ResultGrid
from ray.tune.result import TRIAL_ID
from ray.tune.utils import flatten_dict

from mfhpo._validation import (
    check_baseline,
    check_count,
    check_flag,
    check_instance,
    check_limit,
    check_name,
    check_sequence,
    shown,
)
from mfhpo.certification.candidates import (
    Candidate,
    Shortlist,
    best_of,
    chosen_in_words,
    n_finalists,
)
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.choice import check_blocks
from mfhpo.certification.plan import plan_of
from mfhpo.experiment import ShortlistSettings
from mfhpo.racing.declaration import SigmaLike
from mfhpo.search.declared import ONE_LEVEL
from mfhpo_ray.experiment.configurations import (
    Config,
    assign,
    copied,
    described,
    find,
    fingerprint,
    without,
)
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.processes import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.experiment.results import aim_of, as_number, check_aim
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Source, Trials

TuneCertificate: TypeAlias = Certificate

_logger = logging.getLogger("mfhpo_ray")


def certify(
    results: ResultGrid,
    trainable: str | type | Callable[..., Any],
    *,
    top: int | None = None,
    baseline: Mapping[str, Any] | None = None,
    delta: float = 0.05,
    epsilon: float | None = None,
    budget: int | None = None,
    timeout: float | None = None,
    sigma: SigmaLike = None,
    fidelity: str | None = None,
    time_attr: str = "training_iteration",
    replicate: str | None = None,
    replicates: Sequence[Any] | None = None,
    seed_key: str | None = "seed",
    metric: str | None = None,
    mode: str | None = None,
    measure: int = 10,
    max_failures: int = 3,
    limit: float | None = None,
    memory_limit: float | None = None,
    max_concurrent_trials: int | None = None,
    reuse_actors: bool = False,
    name: str | None = None,
    run_config: tune.RunConfig | None = None,
    plan: bool = False,
) -> Any:
    """Find out which of a finished experiment's best configurations is best, and what it is worth.

    ``results.get_best_result()`` is the luckiest of many noisy trials. This evaluates the best
    `top` configurations again, from scratch and with new seeds, as often as it takes to tell which
    is best. With probability at least 1 - `delta`, no configuration of the shortlist is better by
    more than `epsilon`. It says nothing about configurations outside the shortlist.

    Parameters
    ----------
    results
        What ``Tuner.fit`` returned, with any search and scheduler. Trials count that came farthest
        without an error: after halving, those that were never stopped. Those of one configuration,
        `seed_key` and `replicate` left out, count by their mean.
    trainable
        What the experiment was run with. It must be noisy in the way that matters: take a new split
        and initial state from ``config[seed_key]``.
    top
        How many configurations to compare, at least 2, or 1 with a baseline: that of the best trial
        is among them. None: at most 6, without those that repeats have far below the best.
    baseline
        The configuration in use today, with all keys that trials differ in. It is compared with the
        others, and the answer says by how much the winner is better than it, at least. None:
        there is none.
    delta, epsilon, sigma, measure, budget
        See `mfhpo.certification.certification.Certification`. Evaluations of earlier calls count.
    max_failures
        See `mfhpo.certification.certification.Certification`. An evaluation fails if it raises, or
        ends without a finite value.
    timeout
        Seconds after which the evaluations of this call end. None: no limit.
    fidelity
        A key of the configuration that sets what an evaluation costs, such as "epochs": only trials
        with the largest value are compared. None: there is none.
    time_attr
        The result that says how far a trial has come.
    replicate
        The key of the configuration that sets the split or the seed of an evaluation. All
        candidates then share replicates and are compared by their differences; of `sigma` only
        `Bounded` has a part in it. None: evaluations are independent.
    replicates
        All values of the `replicate`, if it has an end of them: five folds, or the questions of a
        test. See `mfhpo.certification.certification.Certification`. None: numbers below 2**31.
    seed_key
        The key that gets a new seed in each evaluation. None: trials have to draw their own.
    metric, mode
        What to optimise, and whether "max" or "min". None: as the experiment's ``TuneConfig`` says.
    limit, memory_limit
        See `PullScheduler`.
    max_concurrent_trials
        Number of evaluations at one time. None: as many as the cluster has room for.
    reuse_actors
        Whether a process makes one evaluation after another. A class then needs ``reset_config``.
    name
        Name of the experiment that records the evaluations, in the same storage; another name
        begins anew. None: derived from what is compared. Called again after a kill, it goes on from
        there; `delta`, `epsilon`, `budget`, `timeout` and limits may differ.
    run_config
        Callbacks, failures and the like; name, storage and stop are set here.
    plan
        Whether to evaluate nothing, and return what it would take: a
        `mfhpo.certification.plan.Plan`.

    Returns
    -------
    TuneCertificate
        ``print`` it. ``mfhpo_ray.recommendation`` finds the same in its ``results``.
    """
    check_aim(metric, mode)
    timeout = check_limit("timeout", timeout)
    check_name("time_attr", time_attr, "the key of a result")
    for argument, given in (("fidelity", fidelity), ("seed_key", seed_key), ("name", name)):
        if given is not None:
            check_name(argument, given, "a name or None")
    if max_concurrent_trials is not None:
        check_count("max_concurrent_trials", max_concurrent_trials, 1)
    check_flag("reuse_actors", reuse_actors)
    check_instance("run_config", run_config, tune.RunConfig | None, "a tune.RunConfig or None")
    check_instance("trainable", trainable, str | Callable, "a function, a class or its name")
    if isinstance(trainable, str):
        check_name("trainable", trainable, "a function, a class or its name")
    if replicate is not None:
        check_blocks(replicate, fidelity, {"sigma": sigma})
    if replicates is not None:
        replicates = check_sequence("replicates", replicates, "a list of values or None")
        are_different = len(set(map(repr, replicates))) == len(replicates)
        if replicate is None or not (replicates and are_different):
            right = "all values of the key that replicate names, each once"
            raise ValueError(f"replicates must be {right}, got {shown(replicates)}.")
    check_instance("results", results, ResultGrid, "the ResultGrid of Tuner.fit")
    own = aim_of(results)
    metric, mode = metric or own[0], mode or own[1]
    if not (metric and mode):
        raise ValueError(
            "metric and mode are not known; give them: certify(..., metric='accuracy', mode='max')."
        )
    owned = [key for key in (seed_key, replicate) if key is not None]
    shortlist, length = shortlist_of(
        results,
        top,
        metric=metric,
        mode=mode,
        fidelity=fidelity,
        time_attr=time_attr,
        owned=owned,
        baseline=baseline,
    )
    parent, of = posixpath.split(results.experiment_path.rstrip("/"))
    if name is None:
        about: list[Any] = [length, metric, mode, replicate, seed_key]
        about += [] if replicates is None else [replicates]
        compared = [fingerprint(candidate.params) for candidate in shortlist.candidates]
        digest = zlib.crc32(repr([about, compared]).encode())
        name = f"{of}-best-{len(compared)}-{digest:08x}"
    options: dict[str, Any] = {"delta": delta, "epsilon": epsilon, "budget": budget, "sigma": sigma}
    options |= {"measure": measure, "max_failures": max_failures, "blocks": replicate is not None}
    seed = zlib.crc32(name.encode())
    host = {"metric": metric, "mode": mode, "seed": seed, "seed_key": seed_key}
    search = ShortlistSearch(shortlist, options, replicate, replicates, **host)
    about_set = {**options, "replicates": replicates and len(replicates)}
    planned = plan_of(shortlist, about_set, 1.0 if mode == "max" else -1.0)
    if check_flag("plan", plan):
        return planned
    folder = posixpath.join(parent, name)
    search.go_on(Journal.of_runs(results.filesystem, folder))
    if search.finished:
        grid = ResultGrid(ExperimentAnalysis(folder, storage_filesystem=results.filesystem))
    else:
        _logger.info(planned)
        grid = tune.Tuner(
            trainable,
            tune_config=tune.TuneConfig(
                search_alg=search,
                scheduler=search.scheduler(limit, memory_limit),
                num_samples=-1,
                time_budget_s=timeout,
                max_concurrent_trials=max_concurrent_trials,
                reuse_actors=reuse_actors,
            ),
            run_config=replace(
                run_config or tune.RunConfig(verbose=0),
                name=name,
                storage_path=parent,
                storage_filesystem=results.filesystem,
                stop=None if length is None else {time_attr: length},
            ),
        ).fit()
    certificate = search.recommendation().certificate
    assert certificate is not None
    return replace(certificate, results=grid)


class ShortlistSearch(ExperimentSearch):
    """Evaluates the candidates of a shortlist; `host` are options of all searches."""

    def __init__(
        self,
        shortlist: Shortlist,
        options: Mapping[str, Any],
        replicate: str | None,
        replicates: Sequence[Any] | None = None,
        **host: Any,
    ) -> None:
        if host["seed_key"] == replicate:
            host["seed_key"] = None
        trials = _ShortlistTrials(ONE_LEVEL, {**host, "space": None}, replicate)
        trials.replicates = replicates or ()
        options = {**options, "blocks": replicate is not None}
        trials.declared = ShortlistSettings(shortlist=shortlist, options=options)
        trials.declared.runner()  # raises for wrong options
        super().__init__(trials, [candidate.params for candidate in shortlist.candidates])

    def go_on(self, journals: Sequence[Journal]) -> None:
        """Begin, with what earlier runs have recorded; each had taken over what was before it."""
        records: dict[str, dict[str, Any]] = {}
        for journal in journals:
            records |= journal.read()  # the last run was perhaps killed while it took over
        self._begin(*((records, journals[-1].run) if records else ()))
        self.evaluations.leave_run()  # Tune begins another one


class _ShortlistTrials(Trials):
    declared: ShortlistSettings

    def settings(self, source: Source, **common: Any) -> ShortlistSettings:
        return replace(self.declared, **common)


# The configurations of a finished experiment that are compared once more.


class _Trial(NamedTuple):
    """A trial that ended with a finite value; how far it came, by its level first."""

    name: str
    config: Config
    value: float
    came_to: list[float]


def shortlist_of(
    results: ResultGrid,
    top: int | None,
    *,
    metric: str,
    mode: str,
    fidelity: str | None,
    time_attr: str,
    owned: Collection[str],
    baseline: Mapping[str, Any] | None = None,
) -> tuple[Shortlist, float | None]:
    """Return the `top` best configurations without what is `owned`: seeds and replicates.

    The second is the last value of `time_attr` of their trials; None if they report none.
    """
    check_baseline(baseline, has_index=False)
    least = 2 if baseline is None else 1
    if top is not None:
        top = check_count("top", top, least)
    sign = 1.0 if mode == "max" else -1.0
    ended: list[_Trial] = []
    for result in (results[number] for number in range(len(results))):
        metrics: dict[str, Any] = flatten_dict(result.metrics or {})
        value, config = as_number(metrics.get(metric)), result.config
        is_stopped = CENSORED_KEY in metrics or MEMORY_KEY in metrics
        if result.error or is_stopped or config is None or value is None:
            continue
        name = f"trial {metrics[TRIAL_ID]}"
        level = 0.0 if fidelity is None else find(config, fidelity)
        reported = {f"fidelity={shown(fidelity)}": level}
        reported[f"time_attr={time_attr!r}"] = metrics.get(time_attr, 0.0)
        for key, place in reported.items():
            if as_number(place) is None:
                raise ValueError(f"{key} must name a number, but {name} has {shown(place)}.")
        came_to = [float(place) for place in reported.values()]
        if all(map(math.isfinite, (value, *came_to))):
            ended.append(_Trial(name, without(config, owned), value, came_to))

    level, length = farthest = max((trial.came_to for trial in ended), default=[0.0, 0.0])
    kept = [trial for trial in ended if trial.came_to == farthest]
    groups: dict[str, list[_Trial]] = {}
    for trial in kept:
        groups.setdefault(fingerprint(trial.config), []).append(trial)
    if len(groups) < least:
        raise ValueError(
            f"results has {len(groups)} different configurations in its {len(results)} trials that "
            f"ended with a finite metric={shown(metric)}, at the largest {fidelity or time_attr}; "
            f"at least 2 are needed to tell which is best."
        )
    # Sorting keeps the order of equals: the first trial comes first, as in `get_best_result`.
    ranked = sorted(groups.values(), key=lambda group: -sign * _mean(group))
    promises = [max(sign * trial.value for trial in group) for group in ranked]
    first = promises.index(max(promises))
    today = None
    if baseline is not None:
        set_here = owned if fidelity is None else [*owned, fidelity]
        given = without(copied(baseline), set_here)
        config = _whole_baseline(given, [group[0].config for group in ranked])
        today = groups.get(fingerprint(config), [_Trial("baseline", config, math.nan, farthest)])
    own_values = [tuple(trial.value for trial in group) for group in ranked]
    top, n_far = n_finalists(own_values, sign, top)
    chosen, luckiest, place_of_baseline = best_of(ranked, first, top, today)
    candidates = []
    for place, group in enumerate(chosen):
        best = max(group, key=lambda trial: sign * trial.value)
        promise = best.value if place == luckiest else None
        candidates.append(Candidate(best.name, group[0].config, _mean(group), best_value=promise))
    n_best = min(top, len(ranked))
    at = f" that came to {time_attr}={length:g}" if length > 1.0 else ""
    if fidelity is not None:
        at = f" at {fidelity}={level:g}"
    why = "stopped earlier or failed"
    shortlist = Shortlist(
        candidates=tuple(candidates),
        luckiest=luckiest,
        about=f"the {n_best} best of {len(kept)} trials{at}"
        + " and the baseline" * (len(chosen) > n_best),
        words=chosen_in_words("experiment", len(results), len(kept), len(ranked), why, n_far),
        baseline=place_of_baseline,
        own_values=tuple(
            tuple(trial.value for trial in group if math.isfinite(trial.value)) for group in chosen
        ),
    )
    return shortlist, length or None


def _whole_baseline(baseline: Mapping[str, Any], configs: Sequence[Config]) -> Config:
    """Return the baseline with the constants of all configurations that it does not have."""
    flat, given = [flatten_dict(config) for config in configs], flatten_dict(dict(baseline))
    shared = set.intersection(*map(set, flat))
    varies = {key for key in shared if len({repr(described(each[key])) for each in flat}) > 1}
    if wrong := sorted((given.keys() - set().union(*flat)) | (varies - given.keys())):
        raise ValueError(
            f"baseline={shown(dict(baseline))} must have the keys in which configurations differ, "
            f"{sorted(varies)}; look at {wrong[0]!r}."
        )
    whole: Config = {}
    for key, value in {**{key: flat[0][key] for key in shared - varies}, **given}.items():
        assign(whole, key, value)
    return whole


def _mean(trials: list[_Trial]) -> float:
    return sum(trial.value for trial in trials) / len(trials)
