from importlib.metadata import version

from benchmarks.hpo import identity
from benchmarks.hpo.identity import identity_of

FILES = (
    "mfhpo/search/a.py",
    "mfhpo/certification/group_sequential.py",
    "integrations/mfhpo_optuna/samplers/b.py",
)


def test_versions_of_peers():
    assert identity_of("optuna") == identity_of("optuna_gp") == version("optuna")
    assert identity_of("random_search") == ""


def test_ours_is_known_by_its_contents(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "_ROOT", tmp_path)

    def now():
        identity_of.cache_clear()
        return identity_of("ours")

    others = (
        "mfhpo/other.py",
        "integrations/mfhpo_optuna/games/sampler.py",
        "integrations/mfhpo_optuna/time_limits/supervision.py",
    )
    for name in (*FILES, *others):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x = 1\n", encoding="utf-8")
    seen = [now()]
    assert len(seen[0]) == 12
    for name in others:
        (tmp_path / name).write_text("x = 2\n", encoding="utf-8")
    assert now() == seen[0]
    for name in FILES:
        (tmp_path / name).write_text("x = 2\n", encoding="utf-8")
        assert identity_of("ours") == seen[-1]  # this process has imported what was there
        seen.append(now())
    assert len(set(seen)) == 4
    identity_of.cache_clear()
