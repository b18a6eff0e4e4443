"""`certify`: what the winner of a finished study is really worth.

Each new evaluation is a trial of a second study in the same storage, the record.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import NopPruner
from optuna.trial import FrozenTrial, TrialState

from mfhpo import NoNoiseWarning
from mfhpo._validation import (
    MOST_LEVELS,
    check_count,
    check_flag,
    check_instance,
    check_limit,
    check_name,
    check_number,
    shown,
    unwrapped,
)
from mfhpo.certification.certificate import Certificate
from mfhpo.certification.certification import Certification
from mfhpo.certification.choice import check_blocks
from mfhpo.certification.plan import plan_of
from mfhpo.experiment import Answer, ShortlistSettings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import SigmaLike, as_fidelity
from mfhpo.racing.text import params_in_words
from mfhpo_optuna.samplers.answer import add_answer
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.arms import Params
from mfhpo_optuna.study.distributions import Replicates, signs_of
from mfhpo_optuna.study.forgotten import ForgottenReplicate, ForgottenReplicateWarning
from mfhpo_optuna.study.kind import Kind
from mfhpo_optuna.study.loop.report import Progress, ProgressLike, say
from mfhpo_optuna.study.shortlist import StudyShortlist, shortlist_of
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials import attributes

Objective: TypeAlias = Callable[[optuna.Trial], Any]
StudyCertificate: TypeAlias = Certificate


class Replicate(optuna.Trial):
    """A trial whose number is counted on from the search's trials, as seeds may derive from it."""

    def __init__(self, trial: optuna.Trial, first_number: int) -> None:
        # Made anew, it would ask the sampler for another pull.
        self.__dict__.update(trial.__dict__)
        self._first_number = first_number

    @property
    def number(self) -> int:
        """The trial's number, after all those of the study that is certified."""
        return self._first_number + super().number


def certify(
    study: optuna.Study,
    objective: Objective,
    *,
    top: int | None = None,
    baseline: Mapping[str, Any] | None = None,
    delta: float = 0.05,
    epsilon: float | None = None,
    budget: int | None = None,
    timeout: float | None = None,
    sigma: SigmaLike = None,
    fidelity: str | Fidelity | None = None,
    replicate: str | None = None,
    measure: int = 10,
    max_failures: int = 3,
    n_jobs: int = 1,
    catch: Iterable[type[Exception]] | type[Exception] = (),
    name: str | None = None,
    lease: float | None = None,
    progress: ProgressLike = None,
    plan: bool = False,
) -> Any:
    """Find out which of a finished study's best configurations is best, and what it is worth.

    ``study.best_trial`` is the luckiest of many noisy trials. This evaluates the best `top`
    configurations again, as often as it takes to tell which is best. With probability at least 1 -
    `delta`, no configuration of the shortlist is better by more than `epsilon`. It says nothing
    about configurations outside the shortlist.

    Parameters
    ----------
    study
        A study with one objective and at least two different configurations, from any sampler. It
        is not changed. Its complete and feasible trials count, unless they were enqueued outside
        the objective's ranges; of a race, those at the highest level.
    objective
        The objective that the study was run with. It must be noisy in the way that matters: a new
        seed or split in every call, such as `mfhpo_optuna.seed_of` gives. Its ``trial.number``
        goes on from the study's numbers, and its ``should_prune`` says no.
    top
        How many configurations to compare, at least 2, or 1 with a baseline: the best by their
        means in the study, and that of the best trial. None: at most 6, without those far below.
    baseline
        The configuration in use today, with a value for each parameter. None: that of the trial
        which ``study.enqueue_trial(params, user_attrs={"baseline": True})`` has marked.
    timeout
        Seconds after which no evaluation is begun in this call. 0 evaluates nothing and answers
        from what is recorded. None: no limit.
    fidelity
        A parameter, such as the number of epochs, that is to be at its target in all evaluations.
        Give its name, with the upper bound (or the last choice) as the target, or a `Fidelity`
        whose last level is the target. None: parameters are as they were.
    replicate
        A parameter that sets the split or the seed of an evaluation, which the objective asks for
        by ``trial.suggest_int("split", 0, 2**31 - 1)``. All candidates then share replicates and
        are compared by their differences; the claim is about the mean over replicates, and of
        `sigma` only `Bounded` has a part in it. The values of ``suggest_int("fold", 0, 4)`` or of a
        categorical parameter are a finite set: the claim is about these, and exact once all were
        used. None: evaluations are independent. A parameter that looks like a replicate then gives
        a `ForgottenReplicateWarning`, and the answer a notice.
    delta, epsilon, sigma, budget, measure
        See `mfhpo.certification.certification.Certification`. The evaluations of earlier calls are
        part of the budget.
    max_failures
        See `mfhpo.certification.certification.Certification`. An evaluation fails if it raises what
        is in `catch`, returns NaN or infinity, or prunes itself.
    n_jobs, catch
        As in ``study.optimize``. Several processes may also share the work.
    name
        Name of the study that records the evaluations; another name begins anew. None: derived
        from the study's name, `top` and its number of trials.
    lease, progress
        See `mfhpo_optuna.samplers.options.SamplerOptions`.
    plan
        Whether to evaluate nothing, and return what it would take: a
        `mfhpo.certification.plan.Plan`.

    Returns
    -------
    StudyCertificate
        ``print`` it. Its ``luckiest_result`` has what the study's best trial had promised, and
        what that turned out to be worth.

    Raises
    ------
    ValueError
        For a study with several objectives or fewer than two configurations, for arguments out of
        range, and for an objective that asks for other parameters than the study's.

    Notes
    -----
    After Ctrl-C or a kill, call `certify` again with the same arguments: it goes on. `delta`,
    `epsilon`, `budget` and `timeout` may differ, but not while other processes certify the same.

    With 6 candidates and no `epsilon`, it takes about 45 evaluations where they differ by several
    standard deviations of the noise, and 150 where they are all the same.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> from mfhpo_optuna import certify, seed_of
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -1, 1)
    ...     return x**2 + 0.2 * np.random.default_rng(seed_of(trial)).normal()
    >>> sampler = optuna.samplers.TPESampler(seed=0)
    >>> study = optuna.create_study(study_name="noisy parabola", sampler=sampler)
    >>> study.optimize(objective, n_trials=50)
    >>> answer = certify(study, objective, top=4)
    >>> answer.certified, answer.luckiest_result.claim < 0.0 < answer.interval[1]
    (True, True)
    """
    check_instance("objective", objective, Callable, "a function of a trial")
    if name is not None:
        check_name("name", name, "the name of a study or None")
    if timeout is not None and check_number("timeout", timeout, " of seconds or None") != 0.0:
        timeout = check_limit("timeout", timeout)
    if check_count("n_jobs", n_jobs, -1, MOST_LEVELS) == 0:
        raise ValueError("n_jobs must be a number of threads, or -1 for one on each core, got 0.")
    caught: Any = unwrapped(catch)  # as Optuna takes it: a class, or any number of them
    is_one = isinstance(caught, str | bytes | Mapping) or not isinstance(caught, Iterable)
    caught = (caught,) if is_one else tuple(caught)
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in caught):
        raise TypeError(f"catch must be exceptions such as (ValueError,), got {shown(catch)}.")
    if replicate is not None:
        name_of_fidelity = None if fidelity is None else as_fidelity(fidelity).name
        check_blocks(replicate, name_of_fidelity, {"sigma": sigma})
    shortlist = shortlist_of(study, top, fidelity, replicate, baseline)

    options: dict[str, Any] = {"delta": delta, "epsilon": epsilon, "budget": budget}
    options |= {"sigma": sigma, "measure": measure, "max_failures": max_failures}
    # Among the study's parameters, there may be a replicate that is not declared.
    forgotten = ForgottenReplicate(() if shortlist.fidelity is None else (shortlist.fidelity,))
    n_replicates: int | None = None
    for trial in study.get_trials(deepcopy=False):
        if replicate is None:
            value = trial.values[0] if trial.state == TrialState.COMPLETE else None
            forgotten.learn(trial.params, trial.distributions, value)
        elif replicate in trial.distributions:
            n_replicates = Replicates(replicate, 0).count(trial.distributions[replicate])
    kind = _RecordKind(shortlist, options, forgotten)
    in_blocks = {"blocks": replicate is not None, "replicates": n_replicates}
    planned = plan_of(shortlist, {**options, **in_blocks}, signs_of(study)[0])
    if check_flag("plan", plan):
        return planned
    if forgotten.notice:
        warnings.warn(forgotten.notice, ForgottenReplicateWarning, stacklevel=2)
    sampler = StudySampler(kind, options, lease=lease, progress=progress)
    only_reads = timeout == 0
    record = _open_record(study, shortlist, sampler, name, only_reads)
    first_number = attributes.read_attribute(record, attributes.SHORTLIST_KEY)["first_number"]

    def evaluation(trial: optuna.Trial) -> Any:
        return objective(Replicate(trial, first_number))

    if not only_reads:
        if not record.get_trials(deepcopy=False):
            say(str(planned), progress)
        if not sampler.known(record).is_over:
            record.optimize(evaluation, timeout=timeout, n_jobs=n_jobs, catch=caught)
        if objection := sampler.objection_to_others(record):  # other processes certify the same
            raise ValueError(objection)
        known = sampler.known(record)
        if _contest(known).noise_is_hidden:
            warnings.warn(_HOW_TO_SEE_NOISE, NoNoiseWarning, stacklevel=2)
        elif known.is_over:
            add_answer(record, known)
    answer = sampler.known(record).answer().certificate
    assert answer is not None
    return replace(answer, study_name=record.study_name)


def _open_record(
    study: optuna.Study,
    shortlist: StudyShortlist,
    sampler: StudySampler,
    name: str | None,
    only_reads: bool,
    n: int = 1,
) -> optuna.Study:
    """Open the study of the evaluations, or begin it and write down what it is about.

    Who only reads begins it in memory. ValueError if it is about something else already. After one
    of a fixed seed another is opened, the `n`-th: the objective may be mended.
    """
    first = shortlist.name if name is None else name
    name, following = f"{first} ({n})" if n > 1 else first, f"{first} ({n + 1})"
    known = optuna.get_all_study_names(study._storage)
    record = optuna.create_study(
        storage=None if only_reads and name not in known else study._storage,
        study_name=name,
        sampler=sampler,
        pruner=NopPruner(),
        direction=study.direction,
        load_if_exists=True,
    )
    about: dict[str, Any] = {
        "study": study.study_name,
        "candidates": [
            [one.name, one.claim if math.isfinite(one.claim) else params_in_words(one.params)]
            for one in shortlist.candidates
        ],
        "replicate": shortlist.replicate,
    }
    noted = attributes.read_attribute(record, attributes.SHORTLIST_KEY)
    is_foreign = noted is None and record.get_trials(deepcopy=False)
    if is_foreign or record.directions != study.directions:
        raise ValueError(
            f"name={name!r} is a study of its own, with trials that are no evaluations of a "
            f"shortlist, or with other directions; give another name."
        )
    if noted is None:
        for key, value in study.user_attrs.items():
            if not key.startswith(attributes.SAMPLER_KEY):  # it may go on in others
                record.set_user_attr(key, value)
        about["first_number"] = shortlist.first_number
        attributes.write_note(record, attributes.SHORTLIST_KEY, about)
    elif any(noted.get(key) != value for key, value in about.items()):
        raise ValueError(
            f"study {record.study_name!r} records another shortlist, of study {noted['study']!r}: "
            f"{[name for name, _ in noted['candidates']]}. Give another name=, or delete it with "
            f"optuna.delete_study."
        )
    if (following in known or not only_reads) and _contest(sampler.known(record)).noise_is_hidden:
        return _open_record(study, shortlist, sampler, first, only_reads, n + 1)
    return record


_GIVE_THE_SAME = "Give the study's objective, and a baseline with what that asks for."

_HOW_TO_SEE_NOISE = (
    "every evaluation of a candidate gave exactly the same value, so nothing can be certified: the "
    "objective seems to use a fixed random seed or split. Draw a new one in every evaluation (seed "
    "it with the replicate, with mfhpo_optuna.seed_of(trial), or not at all) and certify again; if "
    "the objective really has no noise, say so with sigma=0"
)


class _RecordKind(Kind):
    """Compares the candidates of a shortlist by new evaluations; wrong options raise at once."""

    is_whole = True
    answers_so_far = False
    about_pruning = "should_prune() says no here, so the objective itself has pruned it."

    def __init__(
        self, shortlist: StudyShortlist, options: Mapping[str, Any], forgotten: ForgottenReplicate
    ) -> None:
        self.replicate = shortlist.replicate
        self._shortlist = shortlist
        self._options = {**options, "blocks": self.replicate is not None}
        self._forgotten = forgotten
        ShortlistSettings(shortlist=shortlist, options=self._options).runner()

    def given(self, seed: int) -> list[Params]:
        """Return the candidates' parameters."""
        return [candidate.params for candidate in self._shortlist.candidates]

    def settings(self, common: Mapping[str, Any]) -> ShortlistSettings:
        """Return the settings of the contest."""
        return ShortlistSettings(shortlist=self._shortlist, options=self._options, **common)

    def forgotten(self) -> ForgottenReplicate:
        """Return what finds a forgotten replicate, which has seen the search's trials."""
        return deepcopy(self._forgotten)

    def check(self, known: StudyExperiment, trial: FrozenTrial, state: TrialState) -> None:
        """Raise ValueError if the last evaluation was of something else than the study's trials."""
        not_asked = known.trials.not_asked
        if not_asked:
            raise ValueError(
                f"the objective did not ask for {', '.join(map(repr, not_asked))}, which the "
                f"study's trials have. {_GIVE_THE_SAME}"
            )

    def objection_to_value(
        self, known: StudyExperiment, arm: int, name: str, value: Any, how: BaseDistribution
    ) -> str:
        """Return why the objective cannot be the study's: other parameters, or other ranges."""
        candidate = self._shortlist.candidates[arm]
        if name in candidate.params:
            return (
                f"{name}={value!r} of {candidate.name} is not a value of the objective's "
                f"{how}. {_GIVE_THE_SAME}"
            )
        return (
            f"the objective asks for {name!r}, which {candidate.name} of the study does not have: "
            f"its parameters are {sorted(candidate.params)}. {_GIVE_THE_SAME}"
        )

    def progress(self, known: StudyExperiment) -> Progress:
        """Return candidates left, evaluations, and the leader with its interval."""
        answer = known.answer().certificate
        assert answer is not None
        left = sum(one.standing not in ("worse", "failed") for one in answer.candidates)
        leader = "none, every candidate failed"
        if answer.winner is not None:
            first = answer.candidates[answer.winner]
            leader = f"{first.name}, {first.mean:.4g}, within {answer.within:.3g}"
        total = answer.evaluations + (math.inf if answer.remaining is None else answer.remaining)
        return Progress(
            phase="certify",
            configurations=f"{left}/{len(answer.candidates)} candidates left",
            leader=leader,
            spent=answer.evaluations,
            total=total if math.isfinite(total) else None,
            unit="evaluations",
            is_guess=True,
            has_end=False,  # `certify` returns what is known: nothing is cut short
        )

    def content(self, known: StudyExperiment, answer: Answer) -> dict[str, Any]:
        """Return the certificate as the record has it, with what tells answers apart."""
        assert answer.certificate is not None
        told = answer.certificate.to_dict()
        return {**told, "arm": answer.arm, "trials": told["evaluations"]}

    def promise(self, known: StudyExperiment, answer: Answer) -> float:
        """Return the mean of a certificate, and else the end of its interval, however wide."""
        if answer.certified or answer.arm is None:
            return answer.mean
        return _contest(known).interval(answer.arm)[0 if known.sign > 0.0 else 1]

    def lack(self, known: StudyExperiment, answer: Answer) -> str | None:
        """Return why there is no answer; None where `certify` says that no noise is seen."""
        return None if _contest(known).noise_is_hidden else super().lack(known, answer)


def _contest(known: StudyExperiment) -> Certification:
    runner: Any = known.experiment.runner
    contest: Certification = runner.contest
    return contest
