"""The answer of a state, with its conditions, and whom it waits for."""

from __future__ import annotations

from dataclasses import replace

from mfhpo.experiment.answer import Answer, left_out_in_words, losses_in_words
from mfhpo.experiment.state.state import OF_CLAIMS, State

# A reason names so many of the evaluations that are waited for.
_MOST_NAMED = 3


def conclude(state: State) -> None:
    """Note the first certificate, once a state has learned something."""
    if state.certificate is None and state.runner.finished:
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
    state.runner.conditions = _conditions(state)
    answer = _with_assumptions(state, state.runner.answer())
    if answer.finished and state.is_held_up:
        answer = replace(answer, finished=False)
    if answer.finished:
        return answer
    if state.why_in_vain:
        return replace(answer, finished=True, reason=state.why_in_vain)
    ledger = state.ledger
    if state.is_exhausted or not (ledger.open or state.runner.next(ledger.pending())):
        why = answer.reason.removeprefix("the search goes on; ")
        return replace(answer, finished=True, reason=f"nothing is left to evaluate; {why}")
    if not ledger.waited_for:
        return answer
    return answer.because(
        f"{answer.reason}; values count in the order in which evaluations began, and the "
        f"experiment waits for {whom_it_waits_for(state)}"
    )


def _with_assumptions(state: State, answer: Answer) -> Answer:
    """Return an answer that says what evaluations are, and how many of them were stopped."""
    about = (state.settings.about_evaluations,) if state.settings.about_evaluations else ()
    certificate = answer.certificate
    if certificate is not None:
        certificate = replace(certificate, assumptions=(*about, *certificate.assumptions))
    assumptions = (*about, *answer.assumptions)
    if state.n_stopped:
        assumptions += (
            f"evaluations that end in time: {state.n_stopped} were stopped at a time limit, "
            f"and means are those of the others",
        )
    return replace(answer, assumptions=assumptions, certificate=certificate)


def whom_it_waits_for(state: State) -> str:
    """Return in words which claims hold back others, or else which are under way."""
    waited, labels = state.ledger.waited_for, state.runner.labels
    parts = [
        f"evaluation {id} of {labels.arm(pull.arm)} at {labels.fidelity(pull.fidelity)} "
        f"({n_held} later ones have ended)"
        for id, pull, n_held in waited[:_MOST_NAMED]
    ]
    if len(waited) > _MOST_NAMED:
        parts.append(f"and {len(waited) - _MOST_NAMED} more")
    return ", ".join(parts) or f"{len(state.ledger.open)} evaluations under way"


def _conditions(state: State) -> tuple[str, ...]:
    """Return what must be true about evaluations that a claim would rest on, and were lost."""
    missing = [
        id
        for id, claim in state.ledger.lost.items()
        if claim.begun.purpose in OF_CLAIMS
        and (claim.pull.arm, claim.pull.fidelity, claim.pull.block) not in state.seen
    ]
    has_unsure = not state.unsure.isdisjoint(missing)
    return (
        *losses_in_words(len(missing), state.settings.lease_seconds, has_unsure),
        *(left_out_in_words(n, why) for why, n in state.cut.items() if n),
    )
