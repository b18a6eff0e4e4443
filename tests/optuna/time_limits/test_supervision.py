"""Tests of the program's side of a trial in a process of its own."""

import socket
from itertools import chain, repeat
from typing import Any, cast

import optuna

from mfhpo_optuna.time_limits import supervision
from mfhpo_optuna.time_limits.channel import Channel
from mfhpo_optuna.time_limits.remote_trial import Answers, Call


class _CountsDown(supervision._Clock):
    """A clock that says how much time is left in a given order."""

    def __init__(self, *left):
        super().__init__(1.0)
        self._left = chain(left, repeat(-1.0))

    def left(self):
        return next(self._left)


class _Worker:
    """What a supervisor needs of a worker that never ends by itself."""

    def __init__(self, control):
        self.control = control
        self.killed = False

    def kill_worker(self):
        self.killed = True


def test_time_that_ends_while_an_answer_is_sent():
    program, worker = socket.socketpair()
    control, kept = socket.socketpair()
    with program, worker, control, kept:
        trial = optuna.create_study().ask()
        other = Channel(worker)
        other.send(Call(number=1, seconds=0.0, name="should_prune", arguments=(), options={}))
        killed = _Worker(control)
        end = supervision._supervise(
            cast(Any, killed), Channel(program), Answers(trial), _CountsDown(1.0, 1e-6), 1.0
        )
        assert other.receive(1.0).number == 1
    assert end.how is None
    assert killed.killed
