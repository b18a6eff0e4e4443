"""Fixtures of the tests of the Ray integration."""

import os

import pytest

# Before Ray is imported: it reads them then.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.setdefault("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What needs the cluster is marked so, and left out where no cluster is to be started."""
    for item in items:
        if "ray_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def ray_cluster():
    """A cluster of four slots on this machine, started once: that takes seconds."""
    import ray

    # Local: other tests may have a cluster on this machine at the same time.
    ray.init(
        "local", num_cpus=4, include_dashboard=False, configure_logging=False, log_to_driver=False
    )
    yield
    ray.shutdown()


@pytest.fixture
def shared_journal(tmp_path, monkeypatch):
    """One that each experiment of a test finds, as after a restart."""
    from pyarrow.fs import LocalFileSystem

    from mfhpo_ray.experiment.journal import Journal

    journal = Journal(LocalFileSystem(), str(tmp_path / "journal"))
    monkeypatch.setattr(Journal, "of", classmethod(lambda cls, trial: journal))
    return journal
