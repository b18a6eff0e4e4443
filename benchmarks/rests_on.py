"""Which fingerprints the result of each program rests on."""

from benchmarks.fingerprints import recorded

_SEARCH = ("search by model", "search by halving", "optuna Search", "certificate")
_CERTIFICATES = ("policy blocks", "policy looks", "policy rounds", "certificate")

# The papers' instances declare their noise and their bias.
_ELIMINATION = (
    "policy IISE, declared",
    "policy IISE, bias by order",
    "policy Elimination",
    "policy SuccessiveElimination, declared",
)
_GRADIENT = ("policy MFGrad, declared", "policy MFGrad, published stop")
_LUCB = ("policy MFLUCB, declared", "policy MFLUCB, EXPLORE-A", "policy MFLUCB, EXPLORE-B")

# By program, the kinds of experiments, or what their names begin with. Times alone rest on nothing.
_PREFIXES: dict[str, tuple[str, ...]] = {
    "benchmarks.assumptions": ("policy", "certificate", "search by", "optuna", "sklearn", "ray"),
    "benchmarks.baselines": ("policy", "optuna MF", "optuna certify"),
    "benchmarks.certificate_cost": ("policy",),
    "benchmarks.certify": ("optuna certify", *_CERTIFICATES, "policy MFTopTwo"),
    "benchmarks.certify_cost": ("policy rounds", "policy MFTopTwo"),
    "benchmarks.delta_correctness": ("policy", "certificate"),
    "benchmarks.evidence.run": (),
    "benchmarks.hpo": _SEARCH,
    "benchmarks.hpo.certainty": ("policy IISE", "policy MFLUCB", "policy MFTopTwo"),
    "benchmarks.hpo.certainty_budgets": ("search by", "certificate"),
    "benchmarks.hpo.certificates": _SEARCH,
    "benchmarks.hpo.certify_share": ("search by model", "certificate", "policy looks"),
    "benchmarks.hpo.chance": ("search by", "certificate"),
    "benchmarks.hpo.clock.limits": _SEARCH,
    "benchmarks.hpo.earlier": ("search by model",),
    "benchmarks.hpo.small_spaces": _SEARCH,
    "benchmarks.import_time": (),
    "benchmarks.new_data_interval": ("sklearn MFSearchCV", "sklearn SpaceSearchCV"),
    "benchmarks.overhead": (),
    "benchmarks.papers.authors": (*_ELIMINATION, *_GRADIENT),
    "benchmarks.papers.iise": (*_ELIMINATION, "policy MaximumFidelityExploit"),
    "benchmarks.papers.mf_grad": (*_ELIMINATION, *_GRADIENT, *_LUCB, "policy MFTopTwo, declared"),
    "benchmarks.papers.mf_mab": _LUCB,
    "benchmarks.papers.mf_ucb": ("policy MFUCB", "policy MFElimination"),
    "benchmarks.papers.nash": ("game",),
    "benchmarks.papers.rcucb": ("limits",),
    "benchmarks.papers.rcucb_forest": ("limits",),
    "benchmarks.papers.rcucb_seconds": ("limits",),
    "benchmarks.portfolios": (),
    "benchmarks.questions": ("policy blocks", "certificate"),
    "benchmarks.quickstart": ("optuna IISE", "optuna MF"),
    "benchmarks.ray_tune": ("ray IISEScheduler", "ray MFEliminationScheduler", "policy"),
    "benchmarks.ray_tune.replacement": ("ray MFEliminationScheduler",),
    "benchmarks.replay": (),
    "benchmarks.scale": (),
    "benchmarks.settled": (),
    "benchmarks.size": (),
    "benchmarks.sklearn_search": ("sklearn SpaceSearchCV", "sklearn certify"),
    "benchmarks.time_limit": (),
    "pytest": ("optuna",),
    "tests.examples.cluster.job_queue": _SEARCH,
    "tests.reliability.soak": ("optuna",),
}
# With several workers, rules of order, loss and late results have a part in what is chosen.
_WITH_WORKERS = (
    "benchmarks.assumptions",
    "pytest",
    "tests.examples.cluster.job_queue",
    "tests.reliability.soak",
)


def kinds_of(program: str) -> tuple[str, ...]:
    """Return the kinds of experiments that a program's result rests on.

    Parameters
    ----------
    program
        As after ``python -m``.

    Raises
    ------
    ValueError
        If it is not known.

    Examples
    --------
    >>> kinds_of("benchmarks.papers.nash")
    ('game MF-UCB-PNE', 'game MF-UCB-PNE, costs by player', 'game UCB-PNE')
    """
    if program not in _PREFIXES:
        raise ValueError(
            f"program={program!r} is not listed: say in {__name__} what its result rests on."
        )
    prefixes = tuple(f"{prefix.replace(',', ' ')} " for prefix in _PREFIXES[program])
    kinds = [kind for kind in recorded() if f"{kind.replace(',', ' ')} ".startswith(prefixes)]
    if program not in _WITH_WORKERS:
        kinds = [kind for kind in kinds if "several workers" not in kind]
    return tuple(kinds)
