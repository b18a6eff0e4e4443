"""What the page about trackers leaves in a dashboard's storage, in MLflow and in wandb's folder."""

import json
import math
from pathlib import Path

import optuna
import pytest

from tests.docs.pages import ROOT, run

PAGE = ROOT / "docs" / "how-to" / "trackers.md"

dashboard = pytest.importorskip("optuna_dashboard")
mlflow = pytest.importorskip("mlflow")
wandb = pytest.importorskip("wandb")
pytest.importorskip("optuna_integration")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Names that the page has left, the folder in which it ran, and the summary of wandb's run."""
    folder = tmp_path_factory.mktemp("trackers")
    summary = {}

    def finish(run, **options):  # afterwards nobody can read it
        summary.update(run.summary)
        of_wandb(run, **options)

    of_wandb = wandb.Run.finish
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("MLFLOW_TRACKING_URI", (folder / "mlruns").as_uri())
        patch.setenv("WANDB_ERROR_REPORTING", "false")
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("WANDB_SILENT", "true")
        for kind in ("CACHE", "CONFIG", "DATA"):
            patch.setenv(f"WANDB_{kind}_DIR", str(folder / kind.lower()))
        patch.setattr(wandb.Run, "finish", finish)
        yield run(PAGE), folder, summary
        wandb.teardown()


def runs_of(experiment):
    return mlflow.search_runs(experiment_names=[experiment], output_format="list")


def test_the_dashboard_has_note_plot_and_report(page):
    _, folder, _ = page
    study = optuna.load_study(study_name="race", storage=f"sqlite:///{folder / 'study.db'}")
    assert dashboard.get_note(study).startswith("## Certified\n")
    [report] = optuna.artifacts.get_all_artifact_meta(study)
    assert report.filename == "report.html"
    attributes = study._storage.get_study_system_attrs(study._study_id)
    plots = {key.split(":")[2] for key in attributes if key.startswith("dashboard:plot_data:")}
    assert plots == {"mfhpo-the-race"}


def test_mlflow_has_each_evaluation_and_the_answer(page):
    runs = {run.info.run_name: run for run in runs_of("search")}
    answer = runs.pop("answer")
    artifacts = Path(answer.info.artifact_uri.removeprefix("file://"))
    certificate = json.loads((artifacts / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["certified"] == (answer.data.tags["certified"] == "True")
    assert certificate["mean"] == answer.data.metrics["loss"]
    assert certificate["interval"] == [answer.data.metrics["low"], answer.data.metrics["high"]]
    assert answer.data.params == {"x": str(certificate["params"]["x"])}
    assert "<html" in (artifacts / "report.html").read_text(encoding="utf-8")
    assert len(runs) == certificate["trials"]
    assert {run.data.params["epochs"] for run in runs.values()} == {"1", "3", "9", "27"}
    assert {run.data.tags["state"] for run in runs.values()} == {"COMPLETE"}


def test_the_luckiest_run_in_mlflow_is_no_answer(page):
    runs = {run.info.run_name: run.data.metrics["loss"] for run in runs_of("search")}
    answer = runs.pop("answer")
    assert min(runs.values()) < answer


def test_wandb_has_each_evaluation_and_the_answer(page):
    names, folder, summary = page
    answer = names["answer"]
    assert summary["worth"] == answer.mean
    assert summary["certified"] == answer.certified
    assert math.isfinite(sum(summary["interval"]))
    assert summary["_step"] >= answer.trials - 1
    assert set(names["artifact"].manifest.entries) == {"certificate.json", "report.html"}
    assert len(list((folder / "wandb").glob("offline-run-*/*.wandb"))) == 1


def test_a_callback_of_ones_own_logs_each_evaluation(page):
    names, *_ = page
    study = names["study"]
    [answer] = [trial for trial in study.trials if trial.number == study.best_trial.number]
    losses = [run.data.metrics["loss"] for run in runs_of("squares")]
    assert answer.value not in losses
    assert len(losses) == study.sampler.recommendation(study).trials
