"""Workers of a cluster are killed and started again, and their study ends with its answer."""

import os
import signal
import subprocess
from pathlib import Path

import optuna
import pytest
import yaml

from tests.examples.cluster.job_queue import Plan, evaluated, play, worker

FOLDER = Path(worker.__file__).parent
FAST = {"BUDGET": 500.0, "LEASE": 30.0, "LOCK": 10, "SECONDS_PER_EPOCH": 0.01}

STATUS_OF_SIGTERM = 143


def test_the_script_for_slurm_is_bash():
    script = FOLDER / "slurm.sh"
    subprocess.run(["bash", "-n", script], check=True)
    first, *lines = script.read_text(encoding="utf-8").splitlines()
    options = [line.split()[1] for line in lines if line.startswith("#SBATCH ")]
    assert first == "#!/bin/bash"
    assert {"--requeue", "--signal=B:TERM@300", "--array=1-64%16"} <= {*options}
    assert lines[-1].startswith("exec python worker.py work "), "Slurm's signals reach bash alone"


def test_the_file_for_kubernetes_is_yaml():
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    secret, service, database, create, workers = yaml.safe_load_all(text)
    name = service["metadata"]["name"]
    assert service["spec"]["selector"] == database["spec"]["template"]["metadata"]["labels"]
    for job in (create, workers):
        [container] = job["spec"]["template"]["spec"]["containers"]
        assert container["command"][2] in ("create", "work")
        assert container["command"][3] == "$(STORAGE)"
        password, storage = container["env"][:2]  # a value may use those before it
        assert f":$(PASSWORD)@{name}/" in storage["value"]
        reference = password["valueFrom"]["secretKeyRef"]
        assert reference["key"] in secret["stringData"]
        assert reference["name"] == secret["metadata"]["name"]
    assert workers["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert workers["spec"]["completions"] == workers["spec"]["parallelism"] == 16


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_worker_that_is_told_to_leave_ends_its_trial_first(tmp_path, monkeypatch):
    storage = str(tmp_path / "search.log")
    monkeypatch.setattr(worker, "SECONDS_PER_EPOCH", 0.0)
    before = signal.getsignal(signal.SIGTERM)

    def objective(trial):
        os.kill(os.getpid(), signal.SIGTERM)
        return inner(trial)

    inner = worker.objective
    monkeypatch.setattr(worker, "objective", objective)
    try:
        assert worker.main(["create", storage]) == 0
        assert worker.main(["work", storage]) == STATUS_OF_SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)
    study = optuna.load_study(storage=worker.storage_of(storage), study_name=worker.STUDY)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"]


@pytest.mark.slow
def test_sixteen_workers_that_are_killed_end_their_study(tmp_path, monkeypatch):
    for name, value in FAST.items():
        monkeypatch.setattr(worker, name, value)
    plan = Plan(workers=16, kills=8, every=0.5, grace=1.0, requeue=0.5, settings=FAST)
    found = play(plan, str(tmp_path / "search.log"), tmp_path)
    assert found["lost"] == 0
    assert found["values"] >= found["logged"] > 0
    assert found["unfinished"] <= found["killed"]
    assert found["begun"] > plan.workers
    assert 0.01 < found["params"]["rate"] < 0.1
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert worker.main(["work", str(tmp_path / "search.log")]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    study = optuna.load_study(
        storage=worker.storage_of(str(tmp_path / "search.log")), study_name=worker.STUDY
    )
    assert evaluated(study) == found["values"], "the study had not ended"
