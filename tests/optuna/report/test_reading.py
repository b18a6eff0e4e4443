import json

import optuna
import pytest
from optuna.distributions import FloatDistribution

from mfhpo import Bias, Bounded, Fidelity, HoeffdingRadius, SubGaussian
from mfhpo.censored import Linear
from mfhpo_optuna import IISESampler, RCUCBSampler, SearchSampler, certify
from mfhpo_optuna.arguments import STATE_VERSION, from_json, to_json
from mfhpo_optuna.report.ledger import ledger_of, where_it_went
from mfhpo_optuna.study.trials.attributes import SAMPLER_KEY
from mfhpo_optuna.visualization.reading import read_study, stored_sampler
from tests.optuna.report.conftest import load, noisy, summarised


@pytest.mark.parametrize(
    "arguments",
    [
        {"fidelity": "epochs", "arms": 8, "epsilon": None, "sigma": 0.1},
        {"fidelity": Fidelity("epochs", [1, 9], bias=Bias.order(0.1, 0.0)), "sigma": Bounded(0, 1)},
        {"arms": [{"x": 0.1, "kind": "a"}, {"x": 0.25, "kind": None}]},
        {"arms": {"x": FloatDistribution(1e-5, 1.0, log=True)}, "sigma": SubGaussian([0.1, 0.2])},
        {"limits": [0.5, 1.0], "cost": Linear(0.1), "reward_range": [0.0, 1.0]},
    ],
)
def test_arguments_come_back_from_json(arguments):
    assert from_json(json.loads(json.dumps(to_json(arguments)))) == arguments


def test_an_argument_that_json_does_not_hold_is_named():
    stored = to_json({"radius": HoeffdingRadius(1.0), "delta": 0.1})
    with pytest.raises(ValueError, match=r"radius=HoeffdingRadius\(sigma=1.0"):
        from_json(stored)


@pytest.mark.parametrize("name", ["race", "search"])
def test_a_stored_study_is_read_as_by_its_own_sampler(storage, name):
    study = load(storage, name)
    own = {
        "race": IISESampler("epochs", arms=5, epsilon=0.1, seed=0),
        "search": SearchSampler("epochs", budget=400, certify_share=0.4, top=3, seed=0),
    }[name]
    assert type(stored_sampler(study)) is type(own)
    assert read_study(study).answer == own.recommendation(study).to_dict()


def test_a_certified_race_and_its_luckiest_trial(storage):
    study = load(storage, "race")
    summary, answer = summarised(study), read_study(study).answer
    assert summary.status == "certified"
    assert summary.sentence.endswith(
        "is the best of the 5 configurations compared, or within 0.1 of it."
    )
    worth, luckiest = summary.values
    assert (worth.value, worth.bounds) == (answer["mean"], tuple(answer["interval"]))
    at_target = [t for t in study.trials if t.params["epochs"] == 9]
    values = [t.value for t in at_target if "mfhpo:certificate" not in t.user_attrs]
    assert luckiest.value == min(values)


def test_a_search_tells_what_it_had_promised(storage):
    study = load(storage, "search")
    certificate = read_study(study).answer["certificate"]
    luckiest = certificate["candidates"][certificate["luckiest"]]
    summary = summarised(study)
    assert summary.values[1].value == luckiest["claim"]
    assert f"{abs(luckiest['gap']):.3g}" in summary.luck


def test_all_that_was_paid_is_accounted_for_the_search_first(storage):
    for name in ("race", "search"):
        reading = read_study(load(storage, name))
        shares = where_it_went(ledger_of(reading))
        assert sum(share.spent for share in shares) == pytest.approx(reading.answer["cost"])
        assert sum(share.trials for share in shares) == reading.answer["trials"]
        assert sum(share.part for share in shares) == pytest.approx(1.0)
    places = [(share.purpose, share.level) for share in shares]
    assert places == [("search", 1), ("search", 3), ("search", 9), ("certificate", 9)]


def test_a_record_does_not_take_over_the_sampler_of_its_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    sampler = IISESampler("epochs", arms=3, budget=60, seed=0)
    study = optuna.create_study(storage=url, study_name="race", sampler=sampler)
    objective = noisy(0)
    study.optimize(objective)
    assert SAMPLER_KEY in study.user_attrs
    record = load(url, certify(study, objective, top=2, budget=8).study_name)
    with pytest.raises(ValueError, match="the study records evaluations of certify"):
        stored_sampler(record)
    assert record.user_attrs[SAMPLER_KEY]["arguments"].keys() >= {"measure", "max_failures"}


@pytest.mark.filterwarnings("ignore:.*nobody enforces it")
def test_the_newest_arguments_are_noted():
    study = optuna.create_study(direction="maximize")
    for limit in (1.0, 2.0):
        study.sampler = RCUCBSampler(arms=2, limits=[limit])
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        study.tell(trial, 1.0)
        note = study.user_attrs[SAMPLER_KEY]
        assert note["sampler"] == "RCUCBSampler"
        assert note["arguments"] == {"arms": 2, "limits": [limit]}


@pytest.mark.parametrize(
    "note",
    [
        "SearchSampler",
        {"sampler": "SearchSampler"},
        {"sampler": ["SearchSampler"], "arguments": {}},
        {"sampler": "SearchSampler", "arguments": {"fidelity": "epochs", "of_a_newer_version": 1}},
        {"sampler": "SearchSampler", "arguments": {"fidelity": {"class": "Newer", "fields": {}}}},
        {"sampler": "SearchSampler", "arguments": {"fidelity": {"newer": 1}}},
        {"sampler": "SearchSampler", "arguments": ["epochs"]},
    ],
)
def test_a_note_that_cannot_be_used_is_said_to_be_one(note):
    study = optuna.create_study(study_name="of a newer version")
    if isinstance(note, dict):
        note = note | {"version": STATE_VERSION}
    study.set_user_attr(SAMPLER_KEY, note)
    reading = read_study(study)
    assert reading.sampler is None
    assert reading.without.startswith("the study's note of its sampler cannot be used: ")
