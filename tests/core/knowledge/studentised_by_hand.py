"""The average likelihood ratio of `mfhpo.knowledge.studentised`, written out from values."""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from mfhpo.knowledge.studentised import LOG_WEIGHTS, SCALES


def log_average(sigma, compared, means, others, rho):
    """Of the values of arms with given means, and of other arms, at a standard deviation."""
    logs = LOG_WEIGHTS.copy()
    for k, scale in enumerate(SCALES):
        for values, mean in zip(compared, means, strict=True):
            # Values with a mean that is itself normal are jointly normal.
            n = len(values)
            spread = scale * sigma**2 * (np.eye(n) + np.ones((n, n)) / rho)
            logs[k] += multivariate_normal(np.full(n, mean), spread).logpdf(values)
            logs[k] -= norm.logpdf(values, mean, sigma).sum()
        for values in others:
            for seen in range(1, len(values)):
                square = (values[seen] - np.mean(values[:seen])) ** 2 * seen / (seen + 1)
                logs[k] += square * (1.0 - 1.0 / scale) / (2.0 * sigma**2)
                logs[k] -= seen / (seen + 1) * math.log(scale) / 2.0
    return logsumexp(logs)


def least_log_average(compared, means, others, rho):
    """The minimum over the standard deviation."""

    def at(log_sigma):
        return log_average(math.exp(log_sigma), compared, means, others, rho)

    return minimize_scalar(at, bounds=(-4.0, 4.0), method="bounded", options={"xatol": 1e-6}).fun
