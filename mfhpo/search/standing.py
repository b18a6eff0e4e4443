"""Where a search stands: what it recommends, and what it has found besides."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mfhpo.certification.certificate import Certificate
from mfhpo.problem import Policy, Recommendation
from mfhpo.search.budget import Budget
from mfhpo.search.finalists import Finalists
from mfhpo.search.policy import SearchPolicy


def left_in_words(left: Mapping[str, int]) -> str:
    """Return in words where configurations were left."""
    return ", ".join(f"{n} {where}" for where, n in left.items())


def failures_in_words(failures: Mapping[int, int], name: Callable[[int], str]) -> str:
    """Return in words how many evaluations failed at each level."""
    return ", ".join(f"{n} at {name(level)}" for level, n in sorted(failures.items()) if n)


@dataclass(frozen=True)
class Standing:
    """A search at one moment, by what is asked, and by what that knows."""

    policy: Policy
    search: SearchPolicy
    budget: Budget
    finalists: Finalists

    def recommend(self) -> Recommendation:
        """Return the certified arm, or the best by all that is known so far."""
        certificate, budget = self.certificate(), self.budget
        arm, mean, interval, fidelity = self.leader()
        finalists, finished_arms = self.finalists, tuple(self.search.finished_arms())
        answer = Recommendation(
            arm=arm,
            mean=mean,
            interval=interval,
            fidelity=fidelity,
            delta=finalists.options["delta"],
            epsilon=math.nan if (given := finalists.options["epsilon"]) is None else given,
            finished=self.policy.finished,
            reason=self._why_no_certificate(),
            cost=budget.cost,
            pulls=budget.evaluations - budget.failures,
            failures=budget.failures,
            survivors=finished_arms,
            compared=len(finished_arms),
            notices=self._notices(),
        )
        if certificate is None:
            return answer
        if certificate.winner is not None:
            low, high = sorted(finalists.sign * bound for bound in certificate.interval)
            answer = replace(answer, interval=(low, high))
        names = ("epsilon", "certified", "reason", "compared", "assumptions", "conditions")
        said = {name: getattr(certificate, name) for name in (*names, "unseen", "notices")}
        lost = tuple(f"{result.name}: {result.outcomes}" for result in certificate.not_compared)
        left = certificate.remaining
        cost = None if left is None else budget.from_scratch[-1] * left
        shortlist = finalists.shortlist
        return replace(answer, survivors=shortlist, not_compared=lost, remaining_cost=cost, **said)

    def _why_no_certificate(self) -> str:
        evaluations = self.budget.evaluations
        if evaluations and self.search.leader() is None:
            failed = ""
            if self.search.target and self.budget.failures:
                where = failures_in_words(self.budget.failures_at, self.policy.labels.fidelity)
                failed = f" (failed: {where})"
            return f"none of {evaluations} evaluations gave a value{failed}"
        why = self.budget.why_nothing_is_kept
        if not why and self.policy.finished:
            why = "the budget was spent before a shortlist could be evaluated"
        lucky = "the mean is the search's own, of a configuration selected for it"
        if evaluations and not self.search.finished_arms():
            lucky = f"nothing was evaluated at the target yet; {lucky}"
        return f"{why or 'the search goes on'}; {lucky}"

    def _notices(self) -> tuple[str, ...]:
        name, notices = self.policy.labels.fidelity, []
        shortlist, baseline = self.finalists.shortlist, self.finalists.baseline
        if shortlist and baseline is not None and baseline not in shortlist:
            notices.append("the baseline gave no value at the target, so that it is not compared")
        level = self.search.cheap_failures.lowest - 1
        if level >= 0:
            failed = self.search.cheap_failures.at(level)
            tried = len({*failed, *self.search._values[level]})
            notices.append(
                f"{len(failed)} of {tried} configurations failed at {name(level)}, so that new "
                f"ones begin at {name(level + 1)}"
            )
        return tuple(notices)

    def findings(self) -> dict[str, Any]:
        """Return what an answer adds to `recommend`: see `mfhpo.experiment.Answer`."""
        certificate, arm = self.certificate(), self.finalists.baseline
        is_awaited = arm in self.search.finished_arms() or not self.policy.finished
        alone = self.finalists.baseline_alone(is_awaited)
        return {
            "tried": len(self.budget.reached),
            "stopped": self.budget.stopped,
            "at_target": len(self.search.finished_arms()),
            "left": self.left,
            "chance": self.chance(),
            "certificate": certificate,
            "baseline": (certificate and certificate.baseline) or alone,
        }

    def certificate(self) -> Certificate | None:
        """Return the answer of the shortlist's race so far; None during the search."""
        certification = self.finalists.certification()
        if certification is None:
            return None
        n, given = len(self.finalists.shortlist), self.search.n_candidates
        finished_arms = len(self.search.finished_arms())
        about = f"the shortlist of {n} configurations"
        words = (
            f"of {len(self.budget.reached)} configurations that were tried, the search brought "
            f"{finished_arms} to the target; {n} of these may be the best by what it knew"
        )
        if given:
            about = f"the {n} finalists of {given} candidates"
            others = left_in_words({**self.left, "brought to the target": finished_arms})
            words = (
                f"of {given} candidates: {others}; {n} finalists may be the best by what the "
                f"search knew"
            )
        words += "; the means below use new evaluations only"
        answer = certification.certificate(about, words)
        finished, reason = self.policy.finished, answer.reason
        if finished and not certification.finished:
            reason = f"the budget is spent: {reason}"
        return replace(
            answer,
            finished=finished,
            reason=reason,
            conditions=(*answer.conditions, *self.policy.provisos),
            notices=(*self._notices(), *answer.notices),
        )

    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return the best answer so far in short (see `Policy.leader`)."""
        everything = (-math.inf, math.inf)
        certificate = self.certificate()
        if certificate is not None and certificate.winner is not None:
            certification = self.finalists.certification()
            assert certification is not None
            bounds = certification.interval(certificate.winner)
            low, high = sorted(self.finalists.sign * bound for bound in bounds)
            arm = self.finalists.shortlist[certificate.winner]
            return arm, self.finalists.sign * certificate.mean, (low, high), self.search.target
        leader = self.search.leader()
        if leader is None:
            return None, math.nan, everything, self.search.target
        level = self.search.level_of(leader)
        return leader, self.search.mean(leader, level), everything, level

    def chance(self) -> float | None:
        """Return how likely the recommended arm is within epsilon of the best finished one.

        None without a model or epsilon, before two arms are finished, and in blocks.
        """
        arm, certificate = self.leader()[0], self.certificate()
        if arm is None or self.finalists.in_blocks:
            return None
        epsilon = self.finalists.options["epsilon"]
        if certificate is not None and math.isfinite(certificate.epsilon):
            epsilon = certificate.epsilon
        if epsilon is None or len(self.search.finished_arms()) < 2:
            return None
        found = self.search.chance(arm, epsilon, self.finalists.fresh_values())
        return None if math.isnan(found) else found

    @property
    def left(self) -> dict[str, int]:
        """Numbers of arms that were left below the target or were not tried, by where."""
        name, target, reached = self.policy.labels.fidelity, self.search.target, self.budget.reached
        levels = Counter(level for level in reached.values() if 0 <= level < target)
        found = Counter({f"left at {name(level)}": levels[level] for level in sorted(levels)})
        lost = [arm for arm, level in reached.items() if level < 0]
        failed = Counter(map(self.search.cheap_failures.highest, lost))
        for level, n in sorted(failed.items()):
            found[f"failed at {name(level)}" if level >= 0 and target else "without a value"] += n
        if self.search.n_candidates > len(reached):
            found["not tried"] = self.search.n_candidates - len(reached)
        return dict(found)
