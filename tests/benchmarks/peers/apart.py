"""Peers in environments of their own; those whose environment is not there are skipped."""

import functools
import json
import subprocess
from pathlib import Path

import pytest

from benchmarks.hpo.runs import environments

_ROOT = Path(__file__).parents[3]


@functools.cache
def tried(peer):
    """What each method of a peer does on the curves."""
    found, missing = environments([peer])
    if missing:
        pytest.skip(missing[peer])
    command = [str(found[0].python), "-m", "tests.benchmarks.peers.curves", peer]
    ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])  # pymoo prints a hint before it
