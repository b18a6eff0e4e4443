"""Check that a peer runs in this environment: each of its methods, on a small problem.

python -m benchmarks.peers._check smac
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from benchmarks.hpo.methods import methods_of
from benchmarks.hpo.play import play
from benchmarks.hpo.problems import problem_named

_BUDGET = 8.0


def main(arguments: Sequence[str]) -> int:
    """Play the methods of the peers that are named; 1 if one of them does not run."""
    failed = 0
    for peer in arguments:
        for name, method in methods_of(peer).items():
            record = play(name, method, problem_named("branin"), _BUDGET, seed=0)
            if record.crash or not record.value:
                failed = 1
                print(f"{name}: {record.crash or 'recommends nothing'}", file=sys.stderr)
                continue
            evaluations = sum(record.evaluations)
            print(
                f"{name}: {evaluations} evaluations, {record.value[-1]:.3f} at best, "
                f"{1e3 * record.total_seconds / evaluations:.1f} ms for each"
            )
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
