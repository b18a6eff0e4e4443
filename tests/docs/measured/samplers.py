"""Time and memory that samplers take."""

import statistics

from benchmarks.evidence.tables import distinct, only, result, rows
from tests.docs.cases import column, every, less, over

OF_OPTUNA = ("TPESampler", "QMCSampler", "RandomSampler")


def own(sampler):
    """Milliseconds of a sampler for itself, from the shortest study to the longest."""
    return [of["own"] for of in result("overhead")["samplers"][sampler].values()]


def slower_than_tpe():
    return [ours > tpe for ours, tpe in zip(own("SearchSampler"), own("TPESampler"), strict=True)]


def growth_in_long_studies():
    """Own time with the most trials over that with the fewest, of samplers of ours."""
    found = [row for row in result("scale")["long"] if row["sampler"] not in OF_OPTUNA]
    few, many = sorted(distinct(found, "trials"))
    pairs = [
        (row, only(found, sampler=row["sampler"], storage=row["storage"], trials=few))
        for row in rows(found, trials=many)
    ]
    return [later["own_cpu_ms"][0] / early["own_cpu_ms"][0] for later, early in pairs]


def looks_for_enqueued(storage):
    """The share of the longest study's trials in which Optuna goes through all, by sampler.

    That is what they take longer than those of the shortest, for as many more trials.
    """
    found = rows(result("scale")["long"], storage=storage)
    few, many = sorted(distinct(found, "trials"))
    shares = []
    for row in rows(found, trials=many):
        short = only(found, sampler=row["sampler"], trials=few)
        of_optuna = [one["trial_wall_ms"][0] - one["own_cpu_ms"][0] for one in (short, row)]
        scan = (of_optuna[1] - of_optuna[0]) * many / (many - few)
        shares.append(scan / row["trial_wall_ms"][0])
    return shares


def share_of_list():
    """The share of memory that Optuna's list of trials takes."""
    found = result("scale")["long"]
    read = [row["mib_read"] - row["mib_before"] for row in found]
    return over(read, [row["mib_after"] - row["mib_before"] for row in found])


def processes(key):
    """Medians of worker processes on PostgreSQL: of each sampler by the number of workers."""
    found = result("scale")["processes"]
    return {
        name: [
            statistics.median(column(found, key, sampler=name, workers=workers))
            for workers in sorted(distinct(found, "workers"))
        ]
        for name in distinct(found, "sampler")
    }


def workers_take_more():
    """Whether each takes more of the processor than the database does."""
    workers, database = processes("worker_cpu_ms"), processes("database_cpu_ms")
    return every(less(database[name], workers[name]) for name in workers)


def workers_that_use(share):
    """The numbers of workers with which the processor is used so much under each sampler."""
    numbers = sorted(distinct(result("scale")["processes"], "workers"))
    busy = zip(*processes("processor_busy").values(), strict=True)
    return {number for number, of in zip(numbers, busy, strict=True) if min(of) > share}


def on_the_clock():
    """Own time of our samplers with one driver, each by the number of workers."""
    found = sorted(result("scale")["clock"], key=lambda row: row["workers"])
    names = [name for name in distinct(found, "sampler") if name not in OF_OPTUNA]
    return [[of[0] for of in column(found, "own_ms", sampler=name)] for name in names]
