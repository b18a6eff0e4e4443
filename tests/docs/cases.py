"""What holds for several figures."""

from benchmarks.evidence.tables import rows


def every(cases):
    """Whether all of these cases hold, and there are some."""
    cases = list(cases)
    return bool(cases) and all(cases)


def most(cases):
    """Whether more than half of these cases hold."""
    cases = list(cases)
    return 2 * sum(cases) > len(cases)


def less(ones, others, times=1.0):
    """Whether each figure is less than its counterpart times a number."""
    return every(one < times * other for one, other in zip(ones, others, strict=True))


def grows(figures):
    return less(figures[:-1], figures[1:])


def within(bounds, *figures):
    return every(bounds[0] <= figure <= bounds[1] for figure in figures)


def over(ones, others):
    return [one / other for one, other in zip(ones, others, strict=True)]


def column(found, key, **values):
    """A figure of each row with these values."""
    return [row[key] for row in rows(found, **values)]
