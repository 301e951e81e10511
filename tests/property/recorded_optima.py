"""The optima of the seeded clusters, computed once by the constraint solver and kept in ``tests/golden/optima.json``.

`make test` looks them up, a soak computes each one again and compares; `make optima` computes them and writes the file.
A cluster without a record fails its test: then the clusters have changed, and the file has to be regenerated.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.examples import soaking
from tests.property.planning_judge import Metrics, levels

from kafka_rebalance.planning import PlanRequest

_FILE = Path(__file__).parents[1] / "golden" / "optima.json"
_WRITING = os.environ.get("OPTIMA") == "write"

Optima = dict[str, dict[str, list[int]]]
"""By name of the oracle, then by digest of the request."""

_recorded: Optima = {} if _WRITING else json.loads(_FILE.read_text())


def known(oracle: Callable[[PlanRequest], Metrics | tuple[int, ...]], request: PlanRequest) -> tuple[int, ...]:
    """The oracle's result for the request."""
    optima, key = _recorded.setdefault(oracle.__name__, {}), _digest(request)
    if _WRITING:
        optima[key] = _numbers(oracle(request))
    elif key not in optima:
        raise LookupError(f"{oracle.__name__} of this cluster is not in {_FILE.name}: write it anew with `make optima`")
    elif soaking():
        assert optima[key] == _numbers(oracle(request)), "the recorded optimum is not what the solver finds"
    return tuple(optima[key])


def seeded(clusters: int) -> int:
    """The number of seeded clusters that a test plans: the first half in `make test`, all in a soak."""
    return clusters if _WRITING or soaking() else clusters // 2


def _numbers(found: Metrics | tuple[int, ...]) -> list[int]:
    return list(levels(found) if isinstance(found, Metrics) else found)


def _digest(request: PlanRequest) -> str:
    """The digest of everything that the oracles use, in their order."""
    goals = request.goals
    asked = [
        [[broker.id, broker.rack] for broker in request.brokers],
        [[p.tp.topic, p.tp.partition, p.replicas, p.size_bytes, p.has_leader, p.pinned] for p in request.partitions],
        sorted(request.targets),
        [goals.rack_awareness.value, goals.balance.value, goals.max_replica_moves, goals.max_data_to_move],
    ]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:20]


def _write() -> None:
    lines = []
    for oracle, optima in sorted(_recorded.items()):
        rows = ",\n".join(f'  "{key}": {json.dumps(best)}' for key, best in sorted(optima.items()))
        lines.append(f'"{oracle}": {{\n{rows}\n}}')
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if _WRITING:
    atexit.register(_write)
