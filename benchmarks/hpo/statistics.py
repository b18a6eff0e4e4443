"""Tests, intervals and effect sizes for optimisers that were compared on the same runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from mfhpo.knowledge.arrays import FloatArray


def mean_ranks(losses: FloatArray) -> FloatArray:
    """The average rank of each method, the least loss being rank 1 and ties sharing theirs.

    Parameters
    ----------
    losses
        Shape (methods, ...): the same runs for every method.

    Returns
    -------
    numpy.ndarray
        Shape (methods,).

    Examples
    --------
    >>> mean_ranks(np.array([[1.0, 1.0], [2.0, 1.0], [3.0, 5.0]]))
    array([1.25, 1.75, 3.  ])
    """
    ranks = rankdata(losses, axis=0)
    return np.asarray(ranks.reshape(len(losses), -1).mean(axis=1), dtype=np.float64)


def friedman(losses: FloatArray) -> float:
    """P-value of Friedman's test that no method differs from the others.

    Parameters
    ----------
    losses
        Shape (methods, blocks). With fewer than three methods or two blocks there is nothing to
        test, and the answer is 1, as it is where all methods are alike.
    """
    methods, blocks = losses.shape
    if methods < 3 or blocks < 2 or np.all(losses == losses[0]):
        return 1.0
    return float(friedmanchisquare(*losses).pvalue)


def paired_test(first: FloatArray, second: FloatArray) -> tuple[float, int]:
    """Wilcoxon's signed-rank test of paired losses.

    Pairs without a difference are ranked with the others and then left out (Pratt 1959), so many
    of them make the test cautious. P-values are exact for up to 8 pairs, and up to 50 if no two
    differences are equal.

    Returns
    -------
    tuple of float and int
        The p-value, and which of the two has the larger losses by the sum of signed ranks: 1 the
        first, -1 the second, 0 neither.
    """
    differences = first - second
    if not differences.any():
        return 1.0, 0
    sizes = np.abs(differences)
    larger = np.sign(np.sum(np.sign(differences) * rankdata(sizes)))
    # With ties SciPy would go through all assignments of signs, which takes long beyond 8 pairs.
    tied = len(np.unique(sizes)) < len(sizes) or sizes.min() == 0.0
    method: Literal["approx", "auto"] = "approx" if tied and len(sizes) > 8 else "auto"
    found = wilcoxon(differences, zero_method="pratt", method=method)
    return float(found.pvalue), int(larger)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number by Holm's step-down method (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def probability_of_less(first: FloatArray, second: FloatArray) -> float:
    """The probability that a first loss is below a second one, ties counting half.

    Vargha and Delaney's (2000) effect size A12, for losses: .5 is no effect; above .56, .64 and
    .71 it is called small, medium and large.

    Examples
    --------
    >>> probability_of_less(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
    0.875
    """
    below = first[:, None] < second[None, :]
    ties = first[:, None] == second[None, :]
    return float(np.mean(below + 0.5 * ties))


def bootstrap_means(values: FloatArray, seed: int = 0, resamples: int = 2_000) -> FloatArray:
    """Means over tasks and seeds, had the seeds been others.

    The tasks stay as they are; for each of them the seeds are drawn again, with replacement
    (Efron 1979). What is on further axes is drawn together.

    Parameters
    ----------
    values
        Shape (tasks, seeds, ...).
    seed
        Of the resampling.
    resamples
        Their number.

    Returns
    -------
    numpy.ndarray
        Shape (resamples, ...).
    """
    tasks, seeds = values.shape[:2]
    rng = np.random.default_rng(seed)
    # How often each seed is drawn, instead of the draws: a product of matrices does the rest.
    counts = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=(resamples, tasks))
    weights = counts.reshape(resamples, -1) / (tasks * seeds)
    means = weights @ values.reshape(tasks * seeds, -1)
    return np.asarray(means.reshape(resamples, *values.shape[2:]), dtype=np.float64)


def interval(means: FloatArray, level: float = 0.95) -> FloatArray:
    """The middle part of bootstrapped values, of shape (resamples, ...): both ends, (2, ...)."""
    ends = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(ends, dtype=np.float64)


@dataclass(frozen=True)
class Ranking:
    """Methods by their mean rank, and which of them cannot be told apart.

    Parameters
    ----------
    order
        Indexes of the methods, best first.
    ranks
        Mean rank of each method, in the methods' own order.
    friedman
        P-value of Friedman's test (with two methods, of Wilcoxon's).
    p_values
        Of all pairs, adjusted; shape (methods, methods), 1 on the diagonal.
    cliques
        First and last place in `order` of each run of two or more methods of which no pair
        differs; none of them is part of another one.
    """

    order: tuple[int, ...]
    ranks: tuple[float, ...]
    friedman: float
    p_values: FloatArray
    cliques: tuple[tuple[int, int], ...]


def ranking(losses: FloatArray, alpha: float = 0.05) -> Ranking:
    """Rank methods, and test all pairs by Wilcoxon's signed-rank test, adjusted by Holm's method.

    It takes the place of Nemenyi's critical difference, in which whether two methods differ
    depends on the others that were compared (Benavoli, Corani and Mangili 2016, "Should we really
    use post-hoc tests based on mean-ranks?"; the diagram is Demsar's, 2006).

    Parameters
    ----------
    losses
        Shape (methods, blocks), of one scale in all blocks.
    alpha
        Pairs with an adjusted p-value below it differ, if Friedman's test says that any do.
    """
    methods = len(losses)
    overall = paired_test(*losses)[0] if methods == 2 else friedman(losses)
    pairs = [(i, j) for i in range(methods) for j in range(i + 1, methods)]
    adjusted = holm([paired_test(losses[i], losses[j])[0] for i, j in pairs])
    p_values = np.ones((methods, methods))
    for (i, j), p in zip(pairs, adjusted, strict=True):
        p_values[i, j] = p_values[j, i] = p
    ranks = mean_ranks(losses)
    order = [int(index) for index in np.argsort(ranks, kind="stable")]
    alike = (p_values >= alpha) | (overall >= alpha)
    cliques: list[tuple[int, int]] = []
    for first in range(methods):
        last = first
        while last + 1 < methods and all(
            alike[order[last + 1], order[place]] for place in range(first, last + 1)
        ):
            last += 1
        if last > first and (not cliques or last > cliques[-1][1]):
            cliques.append((first, last))
    return Ranking(tuple(order), tuple(ranks.tolist()), overall, p_values, tuple(cliques))
