"""The golden placements as a row of the benchmark: how many are exact at every level, and the total time."""

import json
import time
from pathlib import Path
from typing import Any

from tests.property.planning_judge import check, levels

from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import PartitionInput, PlanRequest, plan

CASES = Path(__file__).parents[1] / "tests" / "golden" / "placement.json"
LEVELS = ("rack_violations", "count_sumsq", "moves", "leader_sumsq", "pair_sumsq", "leader_changes")
RUNS = 3


def measured() -> dict[str, Any]:
    """Seconds of each run over all cases; moves and lower bounds are summed."""
    cases = json.loads(CASES.read_text())["cases"]
    requests = [_request(case["input"]) for case in cases]
    seconds, used = [], []
    for _ in range(RUNS):
        began, own = time.perf_counter(), time.process_time()
        plans = [plan(request) for request in requests]
        seconds.append(time.perf_counter() - began)
        used.append(time.process_time() - own)
    worth = [list(levels(check(request, made))) for request, made in zip(requests, plans, strict=True)]
    expected = [[case["expected"][level] for level in LEVELS] for case in cases]
    return {
        "seconds": seconds,
        "cpuSeconds": used,
        "moves": sum(made.replica_moves for made in plans),
        "bound": sum(made.certificate.lower_bound for made in plans),
        "cases": len(cases),
        "exact": sum(found == wanted for found, wanted in zip(worth, expected, strict=True)),
    }


def _request(given: dict[str, Any]) -> PlanRequest:
    brokers = tuple(Broker(BrokerId(b["id"]), b["rack"]) for b in given["brokers"])
    partitions = (
        PartitionInput(TopicPartition(p["topic"], p["partition"]), replicas_of(*p["replicas"]))
        for p in given["partitions"]
    )
    return PlanRequest(brokers, tuple(partitions), frozenset(b.id for b in brokers))
