"""RCUCB: which arm to pull, and how long it may take, where a pull may be stopped.

Paper 004 (Bengs, Hüllermeier, "Multi-Armed Bandits with Censored Consumption of Resources",
Machine Learning 2023), Section 3.3.
"""

from mfhpo.censored.policy import CensoredPolicy


class RCUCB(CensoredPolicy):
    """Play the arm and the limit with the highest upper bound on what they gain.

    Every arm is played once at the largest limit, and then, in round t, the pair (i, tau) with the
    largest estimate plus confidence length (Eq. 12). A pull informs about all limits up to its own,
    also when it was stopped. For the reward while it runs; it certifies nothing.

    Parameters
    ----------
    n_arms
        Number of arms n.
    limits
        Limits in seconds, positive and increasing; or how many are to be derived from the first
        durations: equidistant over their interquartile range (Section 5.2).
    longest, cost, penalty, reward_range, delta, horizon, max_failures
        See `mfhpo.censored.options.RCUCBOptions`.

    Raises
    ------
    ValueError, TypeError
        For arguments out of range or of another kind.

    Notes
    -----
    With N(i, tau) pulls at limits of at least tau, the upper bounds are:

    ``"kl"``
        The largest mean that empirical likelihood leaves possible for the gain of a pull at tau, at
        the level alpha log t / N(i, tau). It uses only pulls that tell all of tau; no estimate of
        survival enters. For gains on finitely many values it fails in round t with probability 1 /
        t up to logarithms, and regret is asymptotically the least of a consistent rule that does
        not share between limits (Cappé and others 2013, with log log t more). The bins in which
        gains are kept make it a little wider.
    ``"kl+"``
        The same at the level alpha log(t / N(i, tau)), the default, as in KL-UCB+ (Garivier and
        Cappé 2011): hardly wider than the mean for what was played often. That it is asymptotically
        as good is proven for one-parameter families (Honda 2019), not for this one. In the
        benchmarks its regret is below that of "kl" everywhere.
    ``"bernstein"``
        Mean of the same gains + sqrt(2 V alpha log t / N) + 3 w alpha log t / N with their variance
        V and width w (Audibert, Munos, Szepesvári 2009): in round t it fails with probability 3
        t^(-alpha) for a given N.
    ``"printed"``
        The estimate + sqrt(2 alpha log t / N(i, tau)) + lambda(tau) sqrt(2 alpha log t / N(i, 0)):
        Proposition 1, which holds for alpha > 1, rewards minus costs within a range of 1, and where
        every pull tells whether it ran beyond tau.
    ``"published curves"``
        The same without the last term: what the published figures were made with. It is no bound
        where the penalty is large.

    With a range or limits that were found out and not declared, none of them holds strictly.
    Intervals of answers are by empirical likelihood in all cases. Where several pulls run at once,
    the quick ones come back first. Until the others have, estimates and intervals lean towards
    them. With 16 workers and 150 pulls, most intervals missed for pairs whose pulls either end at
    once or run to the limit.

    Examples
    --------
    >>> from mfhpo import Observation
    >>> from mfhpo.censored import Linear
    >>> policy = RCUCB(2, [1.0, 2.0], cost=Linear(0.1), reward_range=(0, 1), horizon=300)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     seconds, reward = (0.5, 0.7) if pull.arm == 0 else (1.5, 0.9)
    ...     if seconds <= pull.limit:
    ...         policy.tell(pull, Observation(reward, cost=seconds))
    ...     else:
    ...         policy.tell(pull, Observation(None, cost=pull.limit, censored_at=pull.limit))
    >>> answer = policy.recommend()
    >>> answer.arm, answer.limit, round(answer.mean, 2)
    (1, 2.0, 0.75)
    """
