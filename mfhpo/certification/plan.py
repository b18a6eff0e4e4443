"""A guess at what certifying a shortlist takes, by the search's own values."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mfhpo._validation import plain
from mfhpo.certification.baseline import delta_of_race
from mfhpo.certification.candidates import Shortlist, own_noise
from mfhpo.identification.likelihood.finite_set import FEW, most_repeated
from mfhpo.identification.round_elimination import PRIOR
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.fidelity import MOST_SHUFFLED
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, Noise, SubGaussian
from mfhpo.knowledge.studentised import log_evidence
from mfhpo.racing.declaration import as_noise
from mfhpo.racing.extra_pulls import SHARE_TO_SEE
from mfhpo.racing.sentences import aim_in_words, evaluations_to_see
from mfhpo.racing.text import params_in_words

# The best and the last of six values of a study mostly differ by so many standard deviations of
# the noise: 1 to 3 in studies with little and with much of it.
_SPREAD_OF_OWN_VALUES = 1.5

# The variance of a true value where one value of its own is known, in variances of the noise: half
# a standard deviation was seen in finished studies, whatever the noise.
_DOUBT = 0.25

_ROUNDS: FloatArray = np.unique(np.geomspace(1.0, 1e6, 250).round())  # that are tried
_DRAWS = 20  # of true values


@dataclass(frozen=True)
class Plan:
    """A guess at what `certify` takes, before it begins. ``print`` it.

    Parameters
    ----------
    finalists
        The configurations that are compared, the best by the search's own values first.
    about, shortlist, delta, budget
        See `Certificate`, and as they were given.
    epsilon, noise
        The tolerance, or else the noise; and that, the standard deviation of an evaluation. NaN if
        nothing is known.
    evaluations, at_twice_epsilon, at_half_epsilon
        About how many evaluations a certificate takes, and with other tolerances. NaN if nothing
        can be said, infinite if no number will do.
    rests_on
        What the guess rests on.
    """

    finalists: tuple[dict[str, Any], ...]
    about: str
    shortlist: str
    delta: float
    budget: int | None
    epsilon: float
    evaluations: float
    at_twice_epsilon: float
    at_half_epsilon: float
    noise: float
    rests_on: str

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values (None for what is not finite)."""
        content: dict[str, Any] = plain(asdict(self))
        return content

    def __str__(self) -> str:
        lines = [
            f"{_about(self.evaluations)} to certify {self.about}",
            f"  aim         {aim_in_words(self.epsilon, self.delta)}",
        ]
        twice, half = _about(self.at_twice_epsilon), _about(self.at_half_epsilon)
        if self.epsilon and not twice == _about(self.evaluations) == half:
            lines.append(f"  otherwise   with twice that epsilon {twice}, with half of it {half}")
        if self.budget is not None and not math.isnan(self.evaluations):
            enough = "may not do" if self.budget < self.evaluations else "will probably do"
            lines.append(f"  budget      {self.budget} evaluations {enough}")
        lines += [f"  shortlist   {self.shortlist}", f"  rests on    {self.rests_on}"]
        return "\n".join([*lines, *(f"    {params_in_words(one)}" for one in self.finalists)])


def _about(evaluations: float) -> str:
    if math.isnan(evaluations):
        return "nobody knows how many evaluations"
    if math.isinf(evaluations):
        return "more evaluations than anybody makes"
    return f"about {float(f'{evaluations:.2g}'):.0f} evaluations"


def plan_of(shortlist: Shortlist, options: Mapping[str, Any], sign: float) -> Plan:
    """Guess what a shortlist takes; for `options` see `Certification`.

    The `sign` is -1 where values are minimised.
    """
    claims = sign * np.array([candidate.claim for candidate in shortlist.candidates])
    claims = np.where(np.isfinite(claims), claims, np.nanmin(claims))
    delta = delta_of_race(float(options["delta"]), shortlist.baseline)
    declared = as_noise(options["sigma"])
    epsilon = None if options["epsilon"] is None else float(options["epsilon"])
    noise, rests_on = _noise(shortlist, claims, declared)
    own = noise  # what evaluations that share nothing would vary by, if differences do as much
    if options.get("blocks") and noise > 0.0:
        own = _noise_beside_splits(shortlist) or noise
        left_out = "with what splits do to all of them left out"
        rests_on += f", {left_out if own < noise else 'as if replicates shared none of it'}"
    n_own = float(np.mean([len(values) or 1 for values in shortlist.own_values] or [1]))
    doubt, least = math.sqrt(_DOUBT / n_own), int(options["measure"])
    if isinstance(declared, (EstimatedNoise, Gaussian)):
        least = max(least, evaluations_to_see(SHARE_TO_SEE, delta))
    unit = own or math.nan
    scaled, aim = claims / unit, (noise if epsilon is None else epsilon) / unit
    if math.isnan(noise) and epsilon is None and not isinstance(declared, Bounded):
        scaled, aim = np.zeros(len(claims)), 1.0
        rests_on += "; as if all were equally good"
    is_known = isinstance(declared, SubGaussian)
    found = [
        _evaluations(scaled, doubt, aim * times, delta, least, is_known)
        for times in (1.0, 2.0, 0.5)
    ]
    if noise == 0.0:
        found = [float(len(claims) - 1 + max(1, least))] * 3
    n_replicates = options.get("replicates")
    if n_replicates is not None and n_replicates <= MOST_SHUFFLED:
        whole, is_bounded = float(n_replicates * len(claims)), isinstance(declared, Bounded)
        uses_all = n_replicates <= FEW and not is_bounded
        found = [whole if uses_all else float(np.fmin(guess, whole)) for guess in found]
        rests_on += f"; {whole:.0f} on all {n_replicates} replicates are exact"
        if uses_all or is_bounded:
            twice = max(len(claims), most_repeated(n_replicates, delta))
            found = [guess + twice for guess in found]
            rests_on += f"; up to {twice} are made twice, to see whether values are fixed"
        if epsilon is None and (uses_all or is_bounded):
            epsilon = 0.0  # of which nobody has to know the noise
    elif shortlist.baseline is not None:
        rests_on += "; up to half as many more may tell the winner from the baseline"
    return Plan(
        finalists=tuple(dict(candidate.params) for candidate in shortlist.candidates),
        about=shortlist.about,
        shortlist=shortlist.words,
        delta=float(options["delta"]),
        budget=options["budget"],
        epsilon=noise if epsilon is None else epsilon,
        evaluations=found[0],
        at_twice_epsilon=found[1],
        at_half_epsilon=found[2],
        noise=noise,
        rests_on=rests_on,
    )


def _noise(shortlist: Shortlist, claims: FloatArray, declared: Noise) -> tuple[float, str]:
    """Return the noise's standard deviation, NaN if nothing is known, and where it comes from."""
    if isinstance(declared, SubGaussian):
        return declared.at(0, 1), "the declared sigma"
    if isinstance(declared, Bounded):
        return math.nan, "nothing, where the values' range alone is declared"
    if (noise := own_noise(shortlist.own_values)) is not None:
        return noise, f"a noise of {noise:.3g}, by the search's own repeats"
    guess = float(np.ptp(claims)) / _SPREAD_OF_OWN_VALUES
    if not guess:
        return math.nan, "nothing: the finalists' own values are equal, and none was repeated"
    return guess, (
        f"a noise of about {guess:.3g}, guessed by how far the finalists' own values are apart, as "
        f"too few were repeated"
    )


def _noise_beside_splits(shortlist: Shortlist) -> float:
    """Return the standard deviation of values without what splits do to all; 0 if not known."""
    own_values = [values for values in shortlist.own_values if values]
    sizes = {len(values) for values in own_values}
    if not shortlist.shares_splits or own_noise(own_values) is None or len(sizes) > 1:
        return 0.0
    values = np.array(own_values)
    values -= values.mean(axis=1, keepdims=True)
    values -= values.mean(axis=0)
    degrees = (values.shape[0] - 1) * (values.shape[1] - 1)
    return math.sqrt(float((values**2).sum()) / degrees)


def _evaluations(
    claims: FloatArray, doubt: float, epsilon: float, delta: float, least: int, is_known: bool
) -> float:
    """Return the median over true values that the claims allow; all in units of the noise.

    Claims of finalists are lucky, so they are drawn together by the doubtful part of their spread.
    """
    n = len(claims)
    if math.isnan(epsilon) or not np.isfinite(claims).all():
        return math.nan
    variance = float(np.var(claims, ddof=1))
    kept = variance / (variance + doubt**2)
    noise = np.random.default_rng(0).standard_normal((_DRAWS, n))
    truths = np.sort(kept * claims + doubt * noise, axis=1)
    ahead = truths[:, -1:] - truths[:, :-1] + epsilon
    # Of two independent values, the difference has twice the variance.
    sizes, effects = np.broadcast_arrays(_ROUNDS, ahead[:, :, None])
    evidence = log_evidence(effects, sizes, 2.0 * (sizes - 1.0), PRIOR)
    if is_known:
        evidence = sizes * effects**2 / 4.0 - np.log1p(sizes / PRIOR) / 2.0
    is_enough = evidence >= math.log((n - 1) / delta)
    rounds = np.where(is_enough.any(axis=2), _ROUNDS[is_enough.argmax(axis=2)], math.inf)
    return float(np.median(rounds.sum(axis=1) + np.maximum(rounds.max(axis=1), least)))
