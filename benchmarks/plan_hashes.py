"""Compares plans with recorded ones: each cluster, strategy and goal must give the same hash, figures and certificate.

python -m benchmarks.plan_hashes [--small] [--runs 1] [--write]

Prints a row for each plan, with the user CPU seconds of the fastest run, and fails if a plan differs from the recorded
one. ``--small`` skips 100,000 partitions. ``--write`` records the plans instead.
"""

import argparse
import json
import resource
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.clusters import NO_RACK, SCENARIOS, cluster
from kafka_rebalance.model.goals import Balance, RackAwareness, Strategy
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan

RECORDED = Path(__file__).with_name("results") / "plan-hashes.json"
SIZES = {1_000: 12, 10_000: 100, 100_000: 300}
TOPIC = 64
"""Partitions per topic."""
LARGEST = 100_000
VARIED = ("add", "drift")
GOALS = {
    "Preferred": Goals(rack_awareness=RackAwareness.PREFERRED),
    "Disabled": Goals(rack_awareness=RackAwareness.DISABLED),
    "no leaders": Goals(leaders=False),
    "no follower order": Goals(follower_order=False),
    "PerTopic": Goals(balance=Balance.PER_TOPIC),
    "Both": Goals(balance=Balance.BOTH),
    "minimum gain": Goals(minimum_gain=5),
}
"""Goals that differ from the default."""


def requests(partitions: int) -> Iterator[tuple[str, PlanRequest]]:
    """Every scenario; up to 10,000 partitions, some of them also with other strategies and goals."""
    for what in SCENARIOS:
        base = request(what, partitions)
        yield what, base
        if what in VARIED and partitions < LARGEST:
            yield from ((f"{what}, {name}", varied) for name, varied in variants(base))


def request(what: str, partitions: int) -> PlanRequest:
    """The scenario's cluster, with topics and sizes."""
    given = cluster(what, partitions, SIZES[partitions])
    racks = [None if rack == NO_RACK else f"rack-{rack}" for rack in given.racks.tolist()]
    lists = np.split(given.lists, np.cumsum(given.rf)[:-1])
    sizes = np.random.default_rng(1).lognormal(20, 2, partitions).astype(np.int64).tolist()
    rows = (
        PartitionInput(TopicPartition(f"topic-{p // TOPIC}", p % TOPIC), tuple(map(BrokerId, row)), size_bytes=size)
        for p, (row, size) in enumerate(zip((row.tolist() for row in lists), sizes, strict=True))
    )
    brokers = tuple(Broker(BrokerId(b), rack) for b, rack in enumerate(racks))
    return PlanRequest(brokers, tuple(rows), frozenset(map(BrokerId, np.flatnonzero(given.targets).tolist())))


def variants(base: PlanRequest) -> Iterator[tuple[str, PlanRequest]]:
    """The same cluster with other strategies, goals, replication factors, and pinned topics."""
    yield from ((name, replace(base, goals=goals)) for name, goals in GOALS.items())
    for strategy in (Strategy.FORCED_MOVES_ONLY, Strategy.GENERATE, Strategy.PREFERRED_LEADERS):
        yield strategy, replace(base, strategy=strategy)
    for factor in (2, 4):
        yield f"replication factor {factor}", replace(base, replication_factor=factor)
    pinned = (replace(p, pinned=int(p.tp.topic.removeprefix("topic-")) % 5 == 0) for p in base.partitions)
    yield "pinned topics", replace(base, partitions=tuple(pinned))
    moves, data = len(base.partitions) // 10, sum(p.size_bytes for p in base.partitions) // 20
    for balance in Balance:
        yield f"{balance}, {moves} moves", replace(base, goals=Goals(balance=balance, max_replica_moves=moves))
        yield f"{balance}, bytes", replace(base, goals=Goals(balance=balance, max_data_to_move=data))


def planned(given: PlanRequest, runs: int) -> tuple[list[object], float]:
    """The identity of the plan, and the user CPU seconds of the fastest run."""
    seconds = []
    for _ in range(runs):
        began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        made = plan(given)
        seconds.append(resource.getrusage(resource.RUSAGE_SELF).ru_utime - began)
    proof = made.certificate
    moves = [made.replica_moves, proof.lower_bound, proof.optimal]
    return [made.hash, *moves, made.leader_moves, made.data_to_move_bytes, proof.data_lower_bound], min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    recorded = {} if options.write else json.loads(RECORDED.read_text())
    found, different = {}, 0
    for partitions, brokers in SIZES.items():
        if options.small and partitions == LARGEST:
            continue
        for what, given in requests(partitions):
            name = f"{what} {partitions} x {brokers}"
            found[name], seconds = planned(given, options.runs)
            same = options.write or found[name] == recorded[name]
            different += not same
            print(f"{name:<50} {seconds:7.2f} s", *found[name], "" if same else "DIFFERENT", flush=True)
    if options.write:
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
        RECORDED.write_text(f"{{\n{rows}\n}}\n")
    sys.exit(f"{different} plans differ" if different else None)


if __name__ == "__main__":
    main()
