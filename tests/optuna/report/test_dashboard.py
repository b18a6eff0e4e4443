import json
import shutil
import threading
import time
import urllib.request
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import optuna
import pytest

from mfhpo_optuna import IISESampler, publish_to_dashboard
from mfhpo_optuna.report import page as dashboard
from mfhpo_optuna.study.trials.attributes import CERTIFICATE_KEY
from tests.optuna.report.conftest import SCRIPT, load, noisy, summarised

optuna_dashboard = pytest.importorskip("optuna_dashboard")

ADDRESSES = ("see http://a.bc/d_e?f=1&g=*", "HTTPS://a.bc/d_e", "www.a.bc/d_e", "d_e@a.bc")
OWN_WORDS = "Ask *Ann* about trial 3."


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *of_a_request):
        pass


@pytest.fixture(scope="module")
def published(storage, tmp_path_factory):
    """URL of a database in which the answers of the studies were published."""
    file = tmp_path_factory.mktemp("published") / "studies.db"
    shutil.copy(storage.removeprefix("sqlite:///"), file)
    url = f"sqlite:///{file}"
    for name in ("race", "search", "plain"):
        publish_to_dashboard(load(url, name))
    return url


@pytest.fixture(scope="module")
def site(published):
    """Address of a dashboard of the published studies."""
    app = optuna_dashboard.wsgi(published)
    server = make_server("127.0.0.1", 0, app, server_class=Server, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def got(site, path):
    with urllib.request.urlopen(f"{site}{path}") as answer:
        return json.load(answer)


def seen(site, name):
    """What the dashboard knows about a study, and its address there."""
    known = got(site, "/api/studies")["study_summaries"]
    [number] = [study["study_id"] for study in known if study["study_name"] == name]
    return got(site, f"/api/studies/{number}"), f"/studies/{number}"


@pytest.mark.parametrize("name", ["race", "search"])
def test_the_dashboard_has_the_answer_and_the_picture(site, published, name):
    detail, _ = seen(site, name)
    summary = summarised(load(published, name))
    note = detail["note"]["body"]
    assert note.startswith(f"## {summary.status.capitalize()}\n")
    for _, text in summary.rows:
        assert dashboard._plain(text) in note
    [plot] = detail["plotly_graph_objects"]
    figure = json.loads(plot["graph_object"])
    assert figure["layout"]["height"] == 450
    assert summary.status.upper() in figure["layout"]["title"]["text"]
    assert figure["data"]


def test_the_best_trial_of_the_dashboard_is_the_luckiest(site, published):
    study = load(published, "race")
    luckiest = min(study.trials, key=lambda trial: trial.value)
    assert CERTIFICATE_KEY not in luckiest.user_attrs
    assert CERTIFICATE_KEY in study.best_trial.user_attrs
    detail, _ = seen(site, "race")
    assert [trial["number"] for trial in detail["best_trials"]] == [luckiest.number]


def eventually(driver, script, *arguments):
    """The result of a script, once it is neither null nor empty."""
    for _ in range(100):
        result = driver.execute_script(script, *arguments)
        if result:
            return result
        time.sleep(0.1)
    raise AssertionError(f"nothing to be seen: {driver.page_source[:500]}")


def note_below(driver, heading):
    """The text that the page shows of a note with this heading, in one line."""
    text = eventually(
        driver,
        """
        const heads = [...document.querySelectorAll("h2")];
        const head = heads.find((one) => one.innerText === arguments[0]);
        return head && head.parentElement.innerText;
        """,
        heading,
    )
    return " ".join(text.split())


@pytest.mark.parametrize("name", ["race", "search"])
def test_a_browser_shows_the_picture_whole(site, driver, name):
    _, path = seen(site, name)
    driver.get(f"{site}/dashboard{path}")
    plot, card = eventually(
        driver,
        """
        const box = document.querySelector("[id^='user-defined-plot:mfhpo']");
        const drawn = box && box.querySelector("svg.main-svg");
        if (!drawn) return null;
        const card = box.closest(".MuiCard-root");
        return [drawn, card].map((one) => one.getBoundingClientRect().bottom);
        """,
    )
    assert plot <= card
    assert driver.get_log("browser") == []


def test_markup_in_a_value_stays_text(site, published, driver):
    study = load(published, "plain")
    rows = (f"x=_1_ *2* ~~3~~ `4` $5$ [6](http://a.b) | {SCRIPT} & # \\ 7", "a\nb", *ADDRESSES)
    note = "\n\n".join(dashboard._plain(row) for row in rows)
    optuna_dashboard.save_note(study, f"## Text\n\n{note}")
    _, path = seen(site, "plain")
    driver.get(f"{site}/dashboard{path}/note")
    shown = note_below(driver, "Text")
    for row in rows:
        assert " ".join(row.split()) in shown


def test_what_was_written_by_hand_is_kept():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=3, epsilon=0.1, seed=0))
    optuna_dashboard.save_note(study, OWN_WORDS)
    for trials in (3, None):
        study.optimize(noisy(0), n_trials=trials)
        publish_to_dashboard(study)
        note = optuna_dashboard.get_note(study)
        assert note.endswith(f"\n\n{OWN_WORDS}")
        assert note.count("mfhpo rewrites") == note.count("## ") == 1
    assert note.startswith("## Certified\n")
