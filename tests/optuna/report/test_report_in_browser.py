import optuna
import pytest

from mfhpo_optuna import write_report
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
