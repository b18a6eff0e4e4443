import optuna
import pytest

from mfhpo_optuna import write_report
from mfhpo_optuna.visualization import search
from tests.optuna.report.conftest import SCRIPT


@pytest.fixture(scope="module")
def pages(storage, limits, game, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    studies = {"limits": limits, "game": game}
    for name in ("race", "search", "plain"):
        studies[name] = optuna.load_study(study_name=name, storage=storage)
    for name, study in studies.items():
        write_report(study, folder / f"{name}.html")
    return {name: (folder / f"{name}.html").as_uri() for name in studies}


def look(driver, page, width=1200, scheme="light"):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    driver.get(page)


def column(driver, name):
    """The texts of a column's rows that are shown."""
    return driver.execute_script(
        """
        const headers = [...document.querySelectorAll("#table th")];
        const place = headers.findIndex((header) => header.textContent === arguments[0]);
        return [...document.querySelectorAll("#table tbody tr")]
            .filter((row) => row.checkVisibility()).map((row) => row.cells[place].textContent);
        """,
        name,
    )


def click(driver, name):
    for button in driver.find_elements("css selector", "#table th button"):
        if button.text.rstrip(" ▲▼") == name:
            return driver.execute_script("arguments[0].click()", button)
    raise AssertionError(name)


@pytest.mark.parametrize("name", ["race", "search", "plain", "limits", "game"])
def test_pages_draw_without_errors_and_fit_a_phone(driver, pages, name):
    for width in (1200, 400):
        look(driver, pages[name], width)
        assert driver.get_log("browser") == []
        figures = driver.find_elements("css selector", "[data-figure]")
        drawn = driver.find_elements("css selector", "[data-figure] svg.main-svg")
        assert bool(drawn) == bool(figures) == (name != "plain")
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width
        assert not driver.execute_script(
            "return [...document.querySelectorAll('figure .scroll')]"
            ".some((box) => box.scrollWidth > box.clientWidth)"
        )


def test_many_points_are_drawn(driver, storage, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "_MOST_DRAWN_ONE_BY_ONE", 5)
    study = optuna.load_study(study_name="search", storage=storage)
    write_report(study, tmp_path / "many.html")
    look(driver, (tmp_path / "many.html").as_uri())
    assert driver.find_elements("css selector", "[data-figure] canvas")
    assert "WebGL is not supported" not in driver.find_element("id", "pictures").text


def test_columns_sort_by_numbers_both_ways(driver, pages):
    look(driver, pages["race"])
    click(driver, "value")
    rising = [float(text) for text in column(driver, "value") if text]
    assert rising == sorted(rising)
    assert len(set(rising)) > 5
    click(driver, "value")
    falling = [float(text) for text in column(driver, "value") if text]
    assert falling == sorted(rising, reverse=True)
    header = driver.find_element("css selector", "[aria-sort=descending]")
    assert header.text.startswith("value")


def test_infinite_values_sort_at_the_ends(driver, tmp_path):
    study = optuna.create_study(study_name="infinite")
    values = [3.0, float("inf"), 20.0, float("-inf"), float("inf"), 1.0]
    study.add_trials([optuna.trial.create_trial(value=value) for value in values])
    write_report(study, tmp_path / "infinite.html")
    look(driver, (tmp_path / "infinite.html").as_uri())
    click(driver, "value")
    assert column(driver, "value") == ["-inf", "1", "3", "20", "inf", "inf"]
    click(driver, "value")
    assert column(driver, "value") == ["inf", "inf", "20", "3", "1", "-inf"]


def test_rows_without_a_value_are_last_whichever_way(driver, pages):
    look(driver, pages["race"])
    for _ in range(2):
        click(driver, "paid")  # answers were not paid for
        texts = column(driver, "paid")
        empty = texts.count("")
        assert 0 < empty < len(texts)
        assert texts[-empty:] == [""] * empty


def test_the_filter_shows_rows_with_its_words(driver, pages):
    look(driver, pages["search"])
    everything = len(column(driver, "trial"))
    driver.find_element("id", "filter").send_keys("certificate")
    shown = column(driver, "purpose")
    assert 0 < len(shown) < everything
    assert set(shown) == {"certificate"}
    said = driver.find_element("id", "shown").text
    assert said == f"{len(shown)} of {everything} trials"


def test_a_script_in_a_value_stays_text(driver, pages):
    for name in ("race", "search", "plain"):
        look(driver, pages[name])
        assert SCRIPT in column(driver, "kind")
        assert driver.title.startswith(f"{name}: ")


def test_dark_mode_and_print(driver, pages):
    def background(of):
        colour = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
        numbers = driver.execute_script(colour, of).strip("rgba()").split(",")
        return sum(map(float, numbers[:3])) / 3

    look(driver, pages["race"])
    assert background("section") > 240
    look(driver, pages["race"], scheme="dark")
    assert background("section") < 60
    assert background("body") < 60
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert background("section") > 240
    hidden = "return getComputedStyle(document.querySelector('nav')).display"
    assert driver.execute_script(hidden) == "none"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(driver, pages, scheme):
    look(driver, pages["search"], scheme=scheme)
    lowest = driver.execute_script(
        """
        const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
        const light = (colour) => {
          const [r, g, b] = parts(colour).slice(0, 3).map((value) => value / 255)
            .map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = (node) => {
          const colour = getComputedStyle(node).backgroundColor;
          const seen = parts(colour);
          if (seen.length < 4 || seen[3] > 0) return colour;
          return ground(node.parentElement);
        };
        const contrasts = [...document.querySelectorAll("body *")]
          .filter((node) => !node.closest("[data-figure]") && node.checkVisibility())
          .filter((node) => [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim()))
          .map((node) => {
            const [a, b] = [light(getComputedStyle(node).color), light(ground(node))];
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          });
        return [contrasts.length, Math.min(...contrasts)];
        """
    )
    assert lowest[0] > 50
    assert lowest[1] >= 4.5  # WCAG's AA


def test_figures_have_words(driver, pages):
    for name in ("race", "search", "limits", "game"):
        look(driver, pages[name])
        for figure in driver.find_elements("css selector", "[data-figure]"):
            assert figure.get_attribute("role") == "img"
            assert len(figure.get_attribute("aria-label")) > 40
