"""What a storage says is checked before it is believed, and what is written fits into databases."""

import contextlib
import json
import math
import time
import warnings

import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from mfhpo_optuna import IISESampler, NashSampler, RCUCBSampler, SearchSampler, certify
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.study.trials.attributes import attributes_for, read_attribute, write_note
from tests.optuna.samplers.races import bowl

_KEYS = {name: key for name, key in vars(attributes).items() if name.endswith("_KEY")}
OF_STUDIES = ["SAMPLER_KEY", "FIDELITY_KEY", "SHORTLIST_KEY", "GAME_KEY"]
OF_TRIALS = sorted(_KEYS.keys() - set(OF_STUDIES))

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([10**9, 10**400, -(10**400), 2**63, "9" * 5000, "", "epochs", "x" * 10**5]),
    st.floats(),
    st.text(max_size=5),
)
FIELDS = st.sampled_from(
    [
        *("arm", "fidelity", "block", "shortlist", "blind", "worker", "arguments", "certified"),
        *("delta", "epsilon", "trials", "levels", "profile", "sampler", "digest", "version"),
        *("arms", "study", "candidates", "first_number", "players", "costs", "pieces"),
    ]
)
VALUES = st.recursive(
    SCALARS | st.sampled_from([[0] * 10**4]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=8,
)
NOTES = VALUES | st.fixed_dictionaries({"arm": SCALARS}, optional={"fidelity": SCALARS})


def deep(n=5000):
    value = 0
    for _ in range(n):
        value = [value]
    return value


WRONG = {
    "ARM_KEY": [3, [], {}, {"arm": "1"}, {"arm": -1}, {"arm": 10**400}, {"arm": True}, deep()],
    "END_KEY": [3, {}, {"trial": 1}, {"trial": -1, "order": 2}, {"trial": 1, "order": True}],
    "LOST_KEY": [3, {}, {"order": 1}, {"trial": 1, "order": 2, "is_sure": 0}],
    "GAME_KEY": [[], {"players": 3}, {"players": {"row": "x"}, "fidelity": []}, {"players": {}}],
    "ANSWERING_KEY": [3, "", "9" * 10**6],
    "CERTIFICATE_KEY": [
        1,
        {},
        {"arm": 1, "certified": "?"},
        {"certified": True, "arm": -1},
        deep(),
    ],
    "CONCLUDED_KEY": [
        [],
        {"study": "s", "order": 1},
        {"study": "s", "order": -1, "open": []},
        {"study": "s", "order": 1, "open": ["1"]},
        {"study": 1, "order": 1, "open": []},
    ],
    "SO_FAR_KEY": ["1", -1, 10**400, 0.5],
    "FIDELITY_KEY": ["", 3, ["epochs"]],
    "SAMPLER_KEY": [[], {"arguments": []}, {"arguments": {"arms": 10**9}}, {"version": "2"}],
    "SHORTLIST_KEY": [[], {}, {"study": "s", "candidates": 3, "first_number": 1}],
    "LIMIT_KEY": ["60", 0, -1.0, math.nan, 10**400, True, [60]],
    "SECONDS_KEY": ["1", math.inf, math.nan, 10**400],
    "CENSORED_KEY": ["1", 0, math.nan],
    "MEMORY_KEY": ["1", -5],
    "STORAGE_FAILED_KEY": ["3", -1],
    "ENFORCER_KEY": [3, ""],
}


def holder(name, value):
    """A study or a trial that has the attribute, of no other one's name and time."""
    study = optuna.create_study()
    if name in OF_STUDIES:
        study.set_user_attr(_KEYS[name], value)
        return study
    return create_trial(value=1.0, user_attrs={_KEYS[name]: value})


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_what_is_wrong_is_ignored_with_one_warning(name, value):
    of = holder(name, value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            assert read_attribute(of, _KEYS[name]) is None
    (only,) = [str(one.message) for one in caught]
    assert _KEYS[name] in only
    assert (of.study_name if name in OF_STUDIES else f"trial {of.number}") in only


def test_every_kind_of_attribute_has_a_check_and_wrong_values():
    assert set(WRONG) == set(_KEYS)
    assert set(attributes._CHECKS) == set(_KEYS.values())


def test_what_is_not_there_is_no_fault():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_attribute(create_trial(value=1.0), _KEYS["ARM_KEY"]) is None


def equilibrium(trial):
    x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
    return x * y, y - x


RACES = {
    "IISE": (lambda: IISESampler("epochs", arms=3, seed=0), 1),
    "search": (lambda: SearchSampler("epochs", budget=200, seed=0), 1),
    "limits": (lambda: RCUCBSampler(3, limits=[1.0], reward_range=(0, 2), seed=0), 1),
    "game": (lambda: NashSampler({"row": ["x"], "column": ["y"]}, budget=50, seed=0), 2),
}


@pytest.mark.parametrize(
    ("make", "objectives"),
    [
        pytest.param(*race, id=name, marks=[pytest.mark.slow] * (name == "game"))
        for name, race in RACES.items()
    ],
)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_study_with_forged_attributes_goes_on_or_says_why_not(make, objectives, data):
    study = optuna.create_study(sampler=make(), directions=["minimize"] * objectives)
    objective = bowl if objectives == 1 else equilibrium
    forged = st.dictionaries(st.sampled_from(OF_TRIALS).map(_KEYS.get), NOTES, max_size=4)
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(objective, n_trials=3)
        for state in (TrialState.COMPLETE, TrialState.FAIL):
            study.add_trial(
                create_trial(
                    state=state,
                    values=[0.5] * objectives if state == TrialState.COMPLETE else None,
                    params={"x": 0.5, "epochs": 9},
                    distributions={"x": FloatDistribution(-1, 1), "epochs": IntDistribution(1, 9)},
                    user_attrs=data.draw(forged),
                )
            )
        for name in OF_STUDIES:
            if data.draw(st.booleans()):
                study.set_user_attr(_KEYS[name], data.draw(NOTES))
        study.sampler = make()
        answer = study.sampler.recommendation if objectives == 1 else study.sampler.equilibrium
        # It may look like another race's, which is refused in words.
        with contextlib.suppress(ValueError):
            study.optimize(objective, n_trials=2)
            str(answer(study))
    assert time.monotonic() - began < 20.0


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["arm", "certified", "reason", "notices", "x"]),
        st.one_of(st.integers(), st.text(max_size=20), st.lists(st.text('a"ü€', max_size=9))),
    ),
    st.integers(0, 40_000),
)
def test_an_attribute_of_any_length_fits_and_is_read_as_it_was(content, length):
    content |= {"certified": False, "arm": 1, "long": ['"\\ä' * 3] * length}
    trial = create_trial(value=1.0, user_attrs=attributes_for(_KEYS["CERTIFICATE_KEY"], content))
    assert max(len(json.dumps(value)) for value in trial.user_attrs.values()) <= 60_000
    assert len(trial.user_attrs) == 1 or length > 100
    content = {**content, "trials": 1, "evaluations": 1}
    trial = create_trial(value=1.0, user_attrs=attributes_for(_KEYS["CERTIFICATE_KEY"], content))
    assert read_attribute(trial, _KEYS["CERTIFICATE_KEY"]) == content


def test_an_attribute_of_which_a_piece_is_missing_is_ignored():
    study = optuna.create_study()
    write_note(study, _KEYS["GAME_KEY"], {"players": {"a" * 9: ["b"] * 30_000}, "fidelity": []})
    assert read_attribute(study, _KEYS["GAME_KEY"])["players"]["a" * 9] == ["b"] * 30_000
    study.set_user_attr(f"{_KEYS['GAME_KEY']}:1", 3)
    with pytest.warns(UserWarning, match="mfhpo:game"):
        assert read_attribute(study, _KEYS["GAME_KEY"]) is None


def test_a_certificate_of_many_candidates_fits_into_a_database_and_goes_on():
    def objective(trial):
        names = [f"a_rather_long_parameter_name_{number}" for number in range(10)]
        value, *_ = (trial.suggest_float(name, 0, 1) for name in names)
        return value + 0.02 * math.sin(1000.0 * trial.number)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=110)
    options = {"top": 100, "budget": 104, "epsilon": 0.5, "progress": False}
    calls = [certify(study, objective, **options) for _ in range(2)]
    assert calls[0].to_dict() == calls[1].to_dict()
    record = optuna.load_study(study_name=calls[0].study_name, storage=study._storage)
    lengths = [len(json.dumps(v)) for t in record.trials for v in t.user_attrs.values()]
    lengths += [len(json.dumps(value)) for value in record.user_attrs.values()]
    assert 20_000 < max(lengths) <= 60_000
    content = read_attribute(record.best_trial, _KEYS["CERTIFICATE_KEY"])
    assert len(content["candidates"]) == 100
