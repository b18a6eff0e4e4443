"""Check that the figures in README and docs are those of benchmarks/results, or renew them.

    python -m benchmarks.evidence            names what is out of date, and fails then
    python -m benchmarks.evidence --write    renews it

A page says which figures it wants between two comments:

    <!-- figures: rank -->
    <!-- end of figures -->

Below figures that were measured with other code than today's the page says so by itself.

The pictures that pages show are copies, so that they lie beside them.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.evidence import (
    certificates,
    clock,
    games,
    overhead,
    papers,
    portfolios,
    readme,
    reliability,
    scale,
    search,
    stopping,
)
from benchmarks.evidence.freshness import is_of_present_code
from benchmarks.evidence.tables import RESULTS, paragraph, reading, result

ROOT = Path(__file__).parents[2]
FIGURES: dict[str, Callable[[], str]] = {
    **readme.FIGURES,
    **search.FIGURES,
    **stopping.FIGURES,
    **clock.FIGURES,
    **certificates.FIGURES,
    **papers.FIGURES,
    **portfolios.FIGURES,
    **games.FIGURES,
    **overhead.FIGURES,
    **reliability.FIGURES,
    **scale.FIGURES,
}
PICTURES = {
    ROOT / "docs" / "evidence" / name: RESULTS / name
    for name in ("hpo.svg", "hpo_judged.svg", "hpo_nas.svg", "hpo_recorded.svg", "hpo_clock.svg")
}
_PART = re.compile(r"<!-- figures: ([^\n]+) -->\n(?:.*?\n)??<!-- end of figures -->", re.DOTALL)


def pages() -> list[Path]:
    """README and all pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def renewed(text: str) -> str:
    """A page with the figures of today; a KeyError names figures that there are not."""
    return _PART.sub(
        lambda part: f"<!-- figures: {part[1]} -->\n\n{marked(part[1])}\n\n<!-- end of figures -->",
        text,
    )


def marked(name: str) -> str:
    """Figures, and below them which of their results are of an earlier version of the code."""
    with reading() as names:
        figures = FIGURES[name]()
    earlier = [
        f"{one} ({result(one)['date']})"
        for one in sorted(names)
        if not is_of_present_code(result(one))
    ]
    if not earlier:
        return figures
    mark = f"*Of an earlier version of the code: {', '.join(earlier)}.*"
    return f"{figures}\n\n{paragraph(mark)}"


def current() -> dict[Path, str]:
    """What each page and picture should hold."""
    texts = {page: renewed(page.read_text(encoding="utf-8")) for page in pages()}
    return texts | {copy: of.read_text(encoding="utf-8") for copy, of in PICTURES.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="renew what is out of date")
    options = parser.parse_args(arguments)
    stale = 0
    for file, text in current().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale += 1
            print(f"{'renewed' if options.write else 'out of date'}: {file.relative_to(ROOT)}")
            if options.write:
                file.write_text(text, encoding="utf-8")
    return 1 if stale and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
