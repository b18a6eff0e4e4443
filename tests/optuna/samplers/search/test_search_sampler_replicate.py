"""A search whose evaluations share their split, and a certificate over others."""

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler

from mfhpo.search import Replicate
from mfhpo_optuna import SearchSampler
from mfhpo_optuna.study.study_experiment import StudyExperiment
from tests.optuna.samplers.races import PULL, pulls, worker


def objective(trial):
    """The effect of the split is the same for all, and ten times what is a trial's own."""
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    split = trial.suggest_int("split", 0, 2**31 - 1)
    of_split = 0.5 * np.random.default_rng(split).standard_normal()
    own = 0.05 * np.random.default_rng([split, int(1e6 * (x + 1.0))]).standard_normal()
    return (x - 0.3) ** 2 + 0.1 / epochs + of_split + own


def make(**options):
    given = {"budget": 540, "certify_share": 0.4, "epsilon": 0.1, "replicate": "split", "seed": 0}
    return SearchSampler("epochs", proposer=RandomSampler(seed=0), **(given | options))


def run(sampler, objective=objective, **options):
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, **options)
    return study


def splits(study):
    """The splits of the search, and by block those of the certificate."""
    searched, certified = set(), {}
    for trial in pulls(study):
        tag = trial.user_attrs[PULL]
        of_block = certified.setdefault(tag["block"], set()) if "shortlist" in tag else searched
        of_block.add(trial.params["split"])
    return searched, certified


def test_the_search_has_one_split_and_the_certificate_others():
    study = run(make())
    searched, certified = splits(study)
    assert len(searched) == 1
    assert all(len(of_block) == 1 for of_block in certified.values())
    of_blocks = [next(iter(of_block)) for of_block in certified.values()]
    assert len({*searched, *of_blocks}) == 1 + len(of_blocks) >= 3
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert abs(study.best_params["x"] - 0.3) < 0.4
    assert "the mean over replicates" in str(answer)
    assert answer.cost == sum(trial.params["epochs"] for trial in pulls(study)) <= 540


def test_several_workers_and_failures():
    def failing(trial):
        value = objective(trial)
        if trial.number % 11 == 10:
            raise RuntimeError
        return value

    # It pays for two looks at two arms, and for nine evaluations that fail. Which two arms they are
    # depends on the threads: ten blocks tell any two apart that differ by epsilon.
    sampler = make(certify_share=0.49, top=2, max_failures=8, epsilon=0.2)
    study = run(sampler, failing, n_jobs=4, catch=(RuntimeError,))
    searched, certified = splits(study)
    assert len(searched) == 1
    assert all(len(of_block) == 1 for of_block in certified.values())
    assert study.sampler.recommendation(study).certified


@pytest.mark.parametrize("is_told", [False, True])
def test_workers_that_choose_at_the_same_moment_evaluate_different_replicates(is_told):
    storage = optuna.storages.InMemoryStorage()

    one, other = worker(storage, make()), worker(storage, make())
    while not isinstance(one.sampler.known(one).policy.ask()[0], Replicate) if pulls(one) else True:
        one.optimize(objective, n_trials=1)
    # The second looks before the first has written, and writes before the first looks again.
    trials = []
    write = StudyExperiment.claim

    def write_late(self, *arguments):
        if not trials:
            trials.append(None)
            trials[0] = other.ask()
            if is_told:
                other.tell(trials[0], objective(trials[0]))
        write(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StudyExperiment, "claim", write_late)
        first = one.ask()
    tags = [trial.user_attrs[PULL] for trial in (first, trials[0])]
    assert tags[0]["shortlist"] == tags[1]["shortlist"]
    assert (tags[0]["arm"], tags[0]["block"]) != (tags[1]["arm"], tags[1]["block"])
