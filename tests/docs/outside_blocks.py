"""Figures of README and docs outside filled blocks: where each comes from, or what it is.

A new figure belongs into a filled block, see `benchmarks/evidence`. A size of an experiment is
stated in a sentence, and traced here. What nobody measured is listed.
"""

import re

from benchmarks.evidence.tables import result
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


TRACED = {
    "docs/evidence/certificates.md": {
        "in percent of {} to {} races": lambda: (
            min(row["races"] for row in result("assumptions")["rows"]),
            max(row["races"] for row in result("assumptions")["rows"]),
        ),
        "races, at delta {}.": lambda: result("assumptions")["delta"],
        "on {} finished studies": lambda: len(result("certify")["records"]),
        "of TPE, {} tasks": lambda: len({one["task"] for one in result("certify")["records"]}),
        "with {} races each": lambda: _argument("ray_tune", "runs"),
        ": {} configurations of 52": lambda: _argument("ray_tune", "arms"),
        "## Being sure of the best of {}": lambda: _argument("certainty", "arms"),
    },
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
    "docs/how-to/certify.md": {
        "{} to {} for eight candidates": lambda: tuple(map(round, sorted(races.certify()))),
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
    "README.md": [
        "24 LightGBM configurations",
        "24 configurations of LightGBM",
        "Python 3.10 and Optuna 5",
        "0.05 unless you set it",
    ],
    "docs/concepts/certificate.md": ["0.05 unless you set it", "within 0.03 of the best"],
    "docs/concepts/cheap-levels.md": ["A ratio above 1 means"],
    "docs/concepts/pictures.md": ["A race of 24 configurations", "rises above 0"],
    "docs/concepts/samplers.md": [
        "0.8 by default",
        "Below 40 full evaluations",
        "below 100 if costs are measured",
        "take 0.4",
        "set it to 0.",
        "from 20 full evaluations on",
        "at which they take 60 % of it",
    ],
    "docs/concepts/stopped-trials.md": ["20 times as long here"],
    "docs/evidence/certificates.md": [
        "bias 1.2, 1.5 times",
        "accuracies near 1",
        "fails on 2 of 20 splits",
        "The same 12 tasks, noise and tolerance of 0.5 points",
        "8 tasks with",
        "configurations of 52 epochs on 8 slots",
        "Lists of 64 and 200 random configurations of the same 12 tasks",
        "noise and tolerance of 0.5 points, nothing declared",
        "with its 95 % interval",
        '"until 0.95 likely"',
        "among 64 candidates on 15, 30 and 45 full evaluations",
        "with tolerances of 0.25, 0.5 and 1 point",
    ],
    "docs/evidence/games.md": [
        "that cost 1 and 8",
        "Algorithm 1 of the paper",
        "(Eq. 49)",
        "a budget of 128 on",
        "The paper plays 20 links",
        "Five links and the 5 % are",
        "36,000 realisations, no seed brings all five within 5 %",
        "(Figures 4 and 5)",
        "(Figures 6 and 7)",
        "(Figure 6)",
        "(Figure 7)",
        "(Figure 8)",
        "Only the -20 dB",
        "(Figure 9)",
        "(at a budget of 3,000)",
    ],
    "docs/evidence/index.md": ["SHA-256", "since 26 November also"],
    "docs/evidence/overhead.md": ["32 configurations, 10 parameters"],
    "docs/evidence/papers.md": [
        "Table 1",
        "Table 3",
        "Half a 95 % interval",
        "MF-GRAD's own cost at delta 0.01",
        "independent implementation with 4,000 races",
        "a learning rate of 0.25",
        "at delta 0.001 (synthetic) and 0.01 (bai)",
        "in case 1",
        "in case 4",
        "in cases 3 and 4",
        "Remark A.1",
        "Figure 1, with the paper's radius",
        "a capital of 5e5",
        "more often than 1 / t",
        "ten limits, 20 rounds for each, as in Section 5.2",
    ],
    "docs/evidence/search.md": [
        "noise of 0.5 points",
        "4, 12, 33 and 100 % of the epochs",
        "4, 11, 33 and 100 % of the data",
        "with 1, 4, 16 and 64 workers",
        "with 100 full fits each",
        "100 times R²",
        "on 5 to 10 splits",
        "delta is 0.05, so that at most 25",
    ],
    "docs/how-to/declare.md": ["32 drawn from the space", "| 0.05 |"],
    "docs/how-to/pytorch.md": ["a run of 9 epochs", "the first 9 epochs of 27"],
    "docs/how-to/ray.md": ["has 17 values, at delta 0.05"],
    "docs/how-to/replicates.md": [
        "at delta 0.05, a race",
        "more than 10,000 whole numbers",
        "the first 30 results",
    ],
    "docs/how-to/report.md": ["| 0 | done", "| 1 | the", "| 2 | an", "| 3 | there", "| 4 | the"],
    "docs/how-to/trackers.md": [
        "Version 0.21",
        "race: best 8 of 30",
        "with Optuna 6",
    ],
    "docs/index.md": ["24 LightGBM configurations", "Python 3.10 and Optuna 5"],
    "docs/reliability.md": [
        "with 60 trials in the same place",
        "breaks the lock after 30 seconds",
        "a limit of 300 MB",
        "x < -0.3",
        "Optuna alone with 60 trials",
        "beyond 1e50",
        "So 1e308 is",
        "less than 1e-160** count as equal, because the squares of their differences are 0",
        "less than 1e-150 do",
    ],
    "docs/scale.md": [
        "10 parameters and a fidelity",
        "99th percentile",
        "for 0.05 to 0.2 seconds",
        "On a journal with 100,000",
        "keeps at most 10,000 means",
        "sees 300 of them",
        "take 5 to 15 seconds",
        "From 16 workers on",
    ],
    "docs/tutorial.md": [
        "largest value, 81",
        "with 81 rounds",
        "for 40 full evaluations",
        "0.05 by default",
    ],
    "docs/where-we-lose.md": [
        "after 10 evaluations",
        "at a delta of 5 %",
        "ahead at 10",
        "If the budget is 100 full evaluations,",
        "Below 40 there is no certificate",
        "a capital of 5e5",
        "hold with 90 %",
        "Figure 1 in the same paper",
        "within 5 % of the equilibrium, and 20 links",
    ],
}
"""By page, phrases whose figures nobody measured: settings, versions, numbers in a paper."""
