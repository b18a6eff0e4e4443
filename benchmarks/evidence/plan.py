"""Which commands measure the results, at which sizes."""

import shlex
from dataclasses import dataclass
from pathlib import Path

_OF_REPORTS = ("--quick", "--nas", "--recorded", "--seeds=1")
"""What a comparison is reported with as it was played with."""


@dataclass(frozen=True)
class Benchmark:
    """What measures one results file.

    Parameters
    ----------
    name
        Of the results file, without .json.
    module
        That is run.
    small, full
        Arguments for a look at it in a minute or two, and for what the pages show.
    data
        What it is given as --data, a folder below the data folder; None if it needs none.
    """

    name: str
    module: str
    small: str
    full: str = ""
    data: str | None = None

    def commands(self, size: str, folder: Path, data: Path) -> list[list[str]]:
        """What is run in turn, as after `python -m`, to write FOLDER/NAME.json."""
        given = shlex.split(self.small if size == "small" else self.full)
        if self.module == "benchmarks.hpo":
            records = ["--records", str(folder / ".hpo-records")] if size == "small" else []
            flags = [flag for flag in given if flag in _OF_REPORTS]
            return [
                [self.module, "run", *given, *records],
                [self.module, "report", *flags, *records, "--output", str(folder)],
            ]
        where = [] if self.data is None else ["--data", str(data / self.data)]
        return [[self.module, *given, *where, "--output", str(folder / f"{self.name}.json")]]


BENCHMARKS = (
    Benchmark("table1", "benchmarks.papers.iise", "--runs 10", data="iise"),
    Benchmark("mf_mab", "benchmarks.papers.mf_mab", "--quick"),
    Benchmark("mf_grad", "benchmarks.papers.mf_grad", "--runs 10 --instances bai_5x2", data="iise"),
    Benchmark("mf_ucb", "benchmarks.papers.mf_ucb", "--quick"),
    Benchmark("nash", "benchmarks.papers.nash", "--games 2 --applications 0"),
    Benchmark(
        "rcucb", "benchmarks.papers.rcucb", "--repetitions 2 --rounds 2000", "--repetitions 40"
    ),
    Benchmark("rcucb_forest", "benchmarks.papers.rcucb_forest", "--build --repetitions 2"),
    Benchmark("rcucb_seconds", "benchmarks.papers.rcucb_seconds", "--cases tables"),
    Benchmark(
        "delta_correctness", "benchmarks.delta_correctness", "--instances 10", "--instances 500"
    ),
    Benchmark(
        "assumptions",
        "benchmarks.assumptions",
        "--races 5 --only 'shared noise' baseline finite '7 quiet rivals, spreads 1 to 3'",
    ),
    Benchmark(
        "certificate_cost",
        "benchmarks.certificate_cost",
        "--seeds 10 --pools 1",
        "--seeds 100 --pools 3",
        data=".",
    ),
    Benchmark("certify", "benchmarks.certify", "--seeds 1", data="yahpo"),
    Benchmark("certificates", "benchmarks.hpo.certificates", "--runs 4 --sigma 0.5", data="yahpo"),
    Benchmark(
        "certify_share",
        "benchmarks.hpo.certify_share",
        "--seeds 1 --tasks 'random_forest wine table' 'mlp wine table'",
    ),
    Benchmark("certainty", "benchmarks.hpo.certainty", "--arms 20 --seeds 1", data="yahpo"),
    Benchmark("certainty_budgets", "benchmarks.hpo.certainty_budgets", "--seeds 1", data="yahpo"),
    Benchmark("chance", "benchmarks.hpo.chance", "--seeds 1", "--seeds 5", data="yahpo"),
    Benchmark("hpo", "benchmarks.hpo", "--quick --seeds=1 --minutes 3"),
    Benchmark("hpo_nas", "benchmarks.hpo", "--nas --seeds=1", "--nas"),
    Benchmark("hpo_recorded", "benchmarks.hpo", "--recorded --seeds=1 --minutes 3", "--recorded"),
    Benchmark("earlier", "benchmarks.hpo.earlier", "--tasks 1 --seeds 1", data="yahpo"),
    Benchmark("small_spaces", "benchmarks.hpo.small_spaces", "--seeds 2"),
    Benchmark(
        "settled",
        "benchmarks.settled",
        "--seeds 1 --samplers random",
        "--tasks judged --seeds 2",
        data="yahpo",
    ),
    Benchmark(
        "portfolios", "benchmarks.portfolios", "check svm elastic_net --seeds 1", "check --seeds 20"
    ),
    Benchmark("questions", "benchmarks.questions", "--tests 1 --orders 1 --epsilons 0.05"),
    Benchmark(
        "search_limits",
        "benchmarks.hpo.clock.limits",
        "--seeds 1 --tasks 'lcbench 3945'",
        "--seeds 5",
        data="yahpo",
    ),
    Benchmark("quickstart", "benchmarks.quickstart", "--seeds 1 --splits 20"),
    Benchmark("sklearn_search", "benchmarks.sklearn_search", "--seeds 1 --splits 5"),
    Benchmark("new_data_interval", "benchmarks.new_data_interval", "--runs 60"),
    Benchmark("ray_tune", "benchmarks.ray_tune", "--runs 1 --repeats 1", data="yahpo"),
    Benchmark("ray_replacement", "benchmarks.ray_tune.replacement", "--lists 1", data="yahpo"),
    Benchmark("overhead", "benchmarks.overhead", "--trials 200 --repeats 1"),
    Benchmark("import_time", "benchmarks.import_time", "--rounds 3"),
    Benchmark("time_limit", "benchmarks.time_limit", "--trials 20"),
)
"""In the order of the pages."""

LEFT_OUT = {
    "baselines": "make baselines",
    "reliability": "make test-faults",
    "soak": "make soak",
    "cluster": "make cluster",
    "scale": "make scale",
    "hpo_judged": "python -m benchmarks.hpo run --judged, and report --judged",
    "hpo_five_seeds": "python -m benchmarks.hpo report --seeds 5",
    "hpo_clock": "make bench-clock",
    "authors": "make authors PROGRAMS=FOLDER",
}
"""What measures the other results: on databases, once per release, in many hours, or with
programs that are not in this repository."""
