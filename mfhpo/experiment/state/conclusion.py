"""The answer of a state, with its conditions, and whom it waits for."""

from __future__ import annotations

from dataclasses import replace

from mfhpo.experiment.answer import Answer, left_out_in_words, losses_in_words
from mfhpo.experiment.ledger import WaitedFor
from mfhpo.experiment.state.following import wants
from mfhpo.experiment.state.state import OF_CLAIMS, State
from mfhpo.problem import Labels

# A reason names so many of the evaluations that are waited for.
_MOST_NAMED = 3


def conclude(state: State) -> None:
    """Note the first certificate, once a state has learned something."""
    if state.certificate is not None:
        return
    state.tell_costs()
    if state.runner.finished:
        answer = _answer(state)
        state.certificate = answer if answer.certified else None


def answer_of(state: State) -> Answer:
    """Return the best answer so far, with its conditions, and whom it waits for.

    The first certificate stays, unless what comes later certifies the same.
    """
    answer, first = _answer(state), state.certificate
    if first is None or (answer.certified and answer.arm == first.arm):
        return answer
    return first


def _answer(state: State) -> Answer:
    state.tell_costs()
    state.runner.conditions = _conditions(state)
    answer = _with_assumptions(state, state.runner.answer())
    if answer.finished and state.is_held_up:
        answer = replace(answer, finished=False)
    setbacks = state.setbacks
    if setbacks.are_cut_off or (setbacks.are_hopeless and not answer.finished):
        return replace(answer, finished=True, reason=setbacks.in_words())
    if not answer.finished and (state.is_exhausted or not (state.ledger.open or wants(state))):
        why = answer.reason.removeprefix("the search goes on; ")
        return replace(answer, finished=True, reason=f"nothing is left to evaluate; {why}")
    if answer.finished or not state.ledger.waited_for:
        return answer
    words = (
        f"{answer.reason}; values count in the order in which evaluations began, and the "
        f"experiment waits for {whom_it_waits_for(state)}"
    )
    return answer.because(words)


def _with_assumptions(state: State, answer: Answer) -> Answer:
    about = (state.settings.about_evaluations,) if state.settings.about_evaluations else ()
    certificate = answer.certificate
    if certificate is not None:
        assumptions = (*about, *certificate.assumptions)
        certificate = replace(certificate, assumptions=assumptions)
    assumptions = (*about, *answer.assumptions)
    if state.n_stopped:
        stopped = (
            f"evaluations that end in time: {state.n_stopped} were stopped at a time limit, "
            f"and means are those of the others"
        )
        assumptions = (*assumptions, stopped)
    return replace(answer, assumptions=assumptions, certificate=certificate)


def whom_it_waits_for(state: State) -> str:
    """Return in words which claims hold back others, or else which are under way."""
    waited = state.ledger.waited_for
    parts = [_in_words(state.runner.labels, each) for each in waited[:_MOST_NAMED]]
    if len(waited) > _MOST_NAMED:
        parts.append(f"and {len(waited) - _MOST_NAMED} more")
    return ", ".join(parts) or f"{len(state.ledger.open)} evaluations under way"


def _in_words(labels: Labels, waited: WaitedFor) -> str:
    return (
        f"evaluation {waited.id} of {labels.arm(waited.pull.arm)} at "
        f"{labels.fidelity(waited.pull.fidelity)} ({waited.n_held} later ones have ended)"
    )


def _conditions(state: State) -> tuple[str, ...]:
    """Return what must be true about evaluations that a claim would rest on, and were lost."""
    missing = [
        id
        for id, claim in state.ledger.lost.items()
        if claim.begun.purpose in OF_CLAIMS and not state.rivals.has_value(claim.pull)
    ]
    has_unsure = not state.unsure.isdisjoint(missing)
    return (
        *losses_in_words(len(missing), state.settings.lease_seconds, has_unsure),
        *(left_out_in_words(n, why) for why, n in state.setbacks.cut.items() if n),
    )
