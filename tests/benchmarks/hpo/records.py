"""A record of a run, as the tests of records, scores and reports make them up."""

from benchmarks.hpo.record import Record

Step = tuple[float, float | None, float | None]


def record(method, problem, seed, steps, **changes):
    """A run by its steps: cost, true value, claim."""
    costs, values, claims = zip(*steps, strict=True) if steps else ((), (), ())
    given = {
        "budget": 100.0,
        "seconds": (0.0,) * len(steps),
        "evaluations": (30, 10),
        "failures": 1,
        "total_cost": 100.0,
        "total_seconds": 0.08,
        "tried": 30,
        "best_tried": 0.0,
    }
    return Record(
        method, problem, seed=seed, cost=costs, value=values, claim=claims, **(given | changes)
    )
