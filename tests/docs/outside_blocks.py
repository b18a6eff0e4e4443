"""Figures of README and docs outside filled blocks: where each comes from, or what it is.

A new figure belongs into a filled block, see `benchmarks/evidence`. A size of an experiment is
stated in a sentence, and traced here. What nobody measured is listed.
"""

import re
from functools import partial

from scipy.stats import t

from benchmarks.evidence.tables import result
from mfhpo.knowledge.confidence import share_of_look
from tests.docs.measured import races, searches


def _argument(name, option):
    """What a command of a result gave to an option."""
    return re.search(rf"--{option}[= ](\S+)", result(name)["command"])[1]


def _tasks(name, group):
    return len(result(name)["groups"][group]["tasks"])


def _trials_of(part):
    """Trials of which times of enforcing a limit were taken, for each row of a part."""
    [number] = {row["trials"] for row in result("time_limit")[part].values()}
    return number


def _mib_of_ours(sampler):
    """MiB that a sampler of ours adds to Optuna's for 1,000 trials of a long study in memory."""
    [row] = [
        row
        for row in result("scale")["long"]
        if (row["sampler"], row["storage"], row["trials"]) == (sampler, "memory", 100_000)
    ]
    return f"{(row['mib_first'] - row['mib_read']) / 100:.1f}"


def _most_workers_clocked():
    """Most workers of one driver, and evaluations that `SearchSampler` serves them in a second."""
    rows = [row for row in result("scale")["clock"] if row["sampler"] == "SearchSampler"]
    most = max(rows, key=lambda row: row["workers"])
    return most["workers"], round(1000 / most["driver_ms"][0])


def _last_look(n):
    """Half-width of the last look that is planned, at n values of two finalists, at delta .05."""
    looks = max(1, (n // 5).bit_length())
    return f"{t.isf(0.05 * share_of_look(looks, looks) / 4, n - 1) / n**0.5:.1f}"


TRACED = {
    "docs/concepts/samplers.md": {
        "| 4 | 40 to 49 | {} |": partial(_last_look, 4),
        "| 5 | 50 to 149 | {} |": partial(_last_look, 5),
        "| 10 | 200 | {} |": partial(_last_look, 10),
    },
    "docs/evidence/certificates.md": {
        "in percent of {} to {} races": lambda: (
            min(row["races"] for row in result("assumptions")["rows"]),
            max(row["races"] for row in result("assumptions")["rows"]),
        ),
        "Rows of {} races are of the newest code": lambda: min(
            row["races"] for row in result("assumptions")["rows"]
        ),
        "races, at delta {}.": lambda: result("assumptions")["delta"],
        "on {} finished studies": lambda: len(result("certify")["records"]),
        "of TPE, {} tasks": lambda: len({one["task"] for one in result("certify")["records"]}),
        "with {} races each": lambda: _argument("ray_tune", "runs"),
        ": {} configurations of 52": lambda: _argument("ray_tune", "arms"),
        "## Being sure of the best of {}": lambda: _argument("certainty", "arms"),
    },
    "docs/how-to/earlier.md": {"at the worst. {} seeds": lambda: result("earlier")["seeds"]},
    "docs/evidence/games.md": {"{} random games": lambda: _argument("nash", "games")},
    "docs/evidence/overhead.md": {
        "over {} fresh processes": lambda: _argument("import_time", "rounds")
    },
    "docs/evidence/papers.md": {
        "regret after {} rounds": lambda: f"{int(_argument('rcucb', 'rounds')):,}",
        "{} runs. The default bound": lambda: _argument("rcucb", "repetitions"),
        "configurations: {} races each": lambda: _argument("authors", "runs"),
        "{} random forests and ten limits, 20": lambda: (
            int(_argument("rcucb_forest", "rounds")) // 20
        ),
    },
    "docs/evidence/search.md": {
        "{} paired seeds": lambda: len(result("hpo")["seeds"]),
        "LCBench, {} tasks": lambda: _tasks("hpo", "LCBench"),
        "rbv2_xgboost, {} tasks": lambda: _tasks("hpo", "rbv2_xgboost"),
        "{} paired seeds for each method": lambda: len(result("hpo_nas")["seeds"]),
        "{} paired seeds; nothing is fetched": lambda: len(result("hpo_recorded")["seeds"]),
        "cheap levels say. {} seeds": lambda: result("small_spaces")["seeds"],
        "over {} fresh splits": lambda: _argument("sklearn_search", "splits"),
        "R². {} seeds only": lambda: _argument("sklearn_search", "seeds"),
        "`SearchSampler` with {} full evaluations": lambda: int(
            result("certificates")["settings"]["budget"]
        ),
        "of {} may be wrong": lambda: result("certificates")["settings"]["runs"],
        "take {} hours of one core": lambda: searches.hours_to_decide()[0],
        "quicker than ours take {}.": lambda: searches.hours_to_decide()[1],
        "OpenBox would take {} hours": lambda: searches.hours_of_judging("openbox bohb"),
        "hours and SMAC {}": lambda: searches.hours_of_judging("smac multi-fidelity"),
    },
    "docs/evidence/time-limits.md": {
        "heavy tails; {} runs": lambda: _argument("rcucb_seconds", "repetitions"),
        "{} trials for the overhead, {} first ones": lambda: (
            _argument("time_limit", "trials"),
            _trials_of("first_trial"),
        ),
        "and {} late ones": lambda: _trials_of("late"),
    },
    "docs/scale.md": {
        "a study with {:,} trials": lambda: max(row["trials"] for row in result("scale")["long"]),
        "Ours adds {} MiB per 1,000 trials for `IISESampler`": lambda: _mib_of_ours("IISESampler"),
        "and {} for `SearchSampler`": lambda: _mib_of_ours("SearchSampler"),
        "with {} workers `SearchSampler` serves about {} evaluations": _most_workers_clocked,
        "More than {} workers were not measured": lambda: _most_workers_clocked()[0],
    },
    "docs/where-we-lose.md": {
        "Successive halving among {} configurations": lambda: _argument("certainty", "arms"),
        "best of {}]": lambda: _argument("certainty", "arms"),
        "Among {}, it makes": lambda: _argument("certainty", "arms"),
        "Among {} or {} configurations": races.arms_with_declared_bias,
        "up to {} of {} certificates on LCBench": lambda: races.most_wrong_with_bounds(
            "LCBench", "declared"
        ),
        "on SQLite [takes {} ms]": lambda: round(
            result("overhead")["sqlite_wall_ms"]["RandomSampler"]
        ),
    },
}
"""By page, phrases and what stands at their brackets, from a results file."""

GIVEN = {
    "README.md": "24 3.10 5 0.05",
    "docs/concepts/certificate.md": "0.05 0.03",
    "docs/concepts/cheap-levels.md": "1",
    "docs/concepts/experiment.md": "1 1.0 32",
    "docs/concepts/pictures.md": "24 0",
    "docs/concepts/samplers.md": "0.8 40 100 0.4 0 60 20",
    "docs/concepts/stopped-trials.md": "20",
    "docs/evidence/certificates.md": "1.2 1.5 1 2 20 12 0.5 64 200 95 15 30 45 0.25 8 "
    "0 10 29 100 109",
    "docs/evidence/games.md": "1 8 49 128 20 5 36,000 4 6 7 9 3,000",
    "docs/evidence/index.md": "26 256",
    "docs/evidence/overhead.md": "32 10",
    "docs/evidence/papers.md": "95 1 0.01 4,000 0.25 3 4 5 5.2 0.001",
    "docs/evidence/search.md": "0.5 4 12 33 100 11 1 16 64 5 10 0.05 25 50",
    "docs/how-to/clusters.md": "0 3 1.33",
    "docs/how-to/declare.md": "32 0.05",
    "docs/how-to/earlier.md": "60 1,000",
    "docs/how-to/index.md": "0.1.4 0.2.0",
    "docs/how-to/pytorch.md": "9 27",
    "docs/how-to/scikit-learn.md": "1.7",
    "docs/how-to/ray.md": "17 0.05 22 64 1.4 3 80 52 8 40 17",
    "docs/how-to/portfolios.md": "0 1 2.0 08 11 14 21 29",
    "docs/how-to/questions.md": "0 0.05 1 800 9,600",
    "docs/how-to/replicates.md": "0 5 8 10 30 40 10,000",
    "docs/how-to/report.md": "0 1 2 3 4",
    "docs/how-to/stop.md": "0.01 0.98 5 7.9 10 20 41 50 200 250",
    "docs/how-to/trackers.md": "0.21 8 30 6",
    "docs/how-to/upgrade.md": "0.1 0.1.4 0.2.0",
    "docs/index.md": "24 3.10 5",
    "docs/reliability.md": "60 30 300 0.3 1 160 0 150",
    "docs/scale.md": "10 99 100,000 10,000 300 0.05 0.2 16 5 15",
    "docs/tutorial.md": "81 40 0.05",
    "docs/where-we-lose.md": "10 5 50 100 40 1 90 20",
}
"""By page, figures that nobody measured: settings, versions, numbers in a paper."""
