"""`certify`: what the winner of a finished experiment is really worth."""

from __future__ import annotations

import logging
import posixpath
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ray import tune
from ray.tune import ExperimentAnalysis, ResultGrid

from mfhpo._validation import (
    check_count,
    check_flag,
    check_instance,
    check_limit,
    check_name,
    check_sequence,
    shown,
)
from mfhpo.certification.candidates import Shortlist
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.choice import check_blocks
from mfhpo.certification.plan import plan_of
from mfhpo.experiment import ShortlistSettings
from mfhpo.racing.declaration import SigmaLike
from mfhpo.search.declared import ONE_LEVEL
from mfhpo_ray.experiment.journal import Journal
from mfhpo_ray.experiment.metric import check_aim
from mfhpo_ray.experiment.space import fingerprint
from mfhpo_ray.searchers.experiment_search import ExperimentSearch
from mfhpo_ray.searchers.trials import Source, Trials
from mfhpo_ray.shortlist import shortlist_of

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
        What the experiment was run with. It must be noisy in the way that matters: take a new
        split and initial state from ``config[seed_key]``. A trial ends where those that are
        compared have ended.
    top
        How many configurations to compare, at least 2, or 1 with a baseline: that of the best trial
        is among them. None: at most 6, without those that repeats have far below the best.
    baseline
        The configuration in use today, with all keys that trials differ in. It is compared with the
        others, and the answer says by how much the winner is better than it, at least. None:
        there is none.
    delta, epsilon, sigma, measure
        See `mfhpo.certification.certification.Certification`.
    budget
        See `mfhpo.certification.certification.Certification`. Evaluations of earlier calls count.
    max_failures
        See `mfhpo.certification.certification.Certification`. An evaluation fails if it raises, or
        ends without a finite value.
    timeout
        Seconds after which the evaluations of this call end. None: no limit.
    fidelity
        A key of the configuration that sets what an evaluation costs, as our searches have it, such
        as "epochs": only trials with the largest value are compared. None: there is none.
    time_attr
        The result that says how far a trial has come.
    replicate
        The key of the configuration that sets the split or the seed of an evaluation. All
        candidates then share replicates and are compared by their differences; the claim is about
        the mean over replicates, and of `sigma` only `Bounded` has a part in it. None: evaluations
        are independent.
    replicates
        All values of the `replicate`, if it has an end of them: five folds, or the questions of a
        test. The claim is then about these, and exact once all were used; for what is claimed
        before, see `mfhpo.certification.certification.Certification`. None: numbers below 2**31.
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
        begins anew. None: derived from the results' name and from what is compared. When it is
        called again after Ctrl-C or a kill, it goes on from there; `delta`, `epsilon`, `budget`,
        `timeout` and limits may differ.
    run_config
        Callbacks, failures and the like; name, storage and stop are set here.
    plan
        Whether to evaluate nothing, and return what it would take: a
        `mfhpo.certification.plan.Plan`.

    Returns
    -------
    TuneCertificate
        ``print`` it. Its ``luckiest_result`` has what the best trial had promised, and what that
        turned out to be worth. ``mfhpo_ray.recommendation`` finds the same in its ``results``.
    """
    check_aim(metric, mode)
    timeout = check_limit("timeout", timeout)
    check_name("time_attr", time_attr, "the key of a result")
    for argument, key in (("fidelity", fidelity), ("seed_key", seed_key)):
        if key is not None:
            check_name(argument, key, "a key of the configuration or None")
    if name is not None:
        check_name("name", name, "the name of an experiment or None")
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
        if replicate is None or not replicates:
            right = "all values of the key that replicate names, at least one"
            raise ValueError(f"replicates must be {right}, got {shown(replicates)}.")
        if len(set(map(repr, replicates))) < len(replicates):
            raise ValueError(f"replicates must be different values, got {shown(replicates)}.")
    metric, mode = _aim_of(results, metric, mode)
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
        about += [] if replicates is None else [list(replicates)]
        compared = [fingerprint(candidate.params) for candidate in shortlist.candidates]
        digest = zlib.crc32(repr([about, compared]).encode())
        name = f"{of}-best-{len(compared)}-{digest:08x}"
    options: dict[str, Any] = {"delta": delta, "epsilon": epsilon, "budget": budget, "sigma": sigma}
    options |= {"measure": measure, "max_failures": max_failures}
    seed = zlib.crc32(name.encode())
    host = {"metric": metric, "mode": mode, "seed": seed, "seed_key": seed_key}
    search = ShortlistSearch(shortlist, options, replicate, replicates, **host)
    in_blocks = {"blocks": replicate is not None, "replicates": replicates and len(replicates)}
    planned = plan_of(shortlist, {**options, **in_blocks}, 1.0 if mode == "max" else -1.0)
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


def _aim_of(results: Any, metric: str | None, mode: str | None) -> tuple[str, str]:
    """Return the metric and the mode, those of the experiment where none are given."""
    check_instance("results", results, ResultGrid, "the ResultGrid of Tuner.fit")
    analysis = getattr(results, "_experiment_analysis", None)
    metric = metric or getattr(analysis, "default_metric", None)
    mode = mode or getattr(analysis, "default_mode", None)
    if not (metric and mode):
        raise ValueError(
            "metric and mode are not known; give them: certify(..., metric='accuracy', mode='max')."
        )
    return metric, mode


class ShortlistSearch(ExperimentSearch):
    """Evaluates the candidates of a shortlist until the best of them is known.

    See `mfhpo.experiment.ShortlistSettings` and `certify`; `host` are options of all searches.
    """

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
