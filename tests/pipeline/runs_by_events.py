"""Runs of a cluster by events, one copy ending after the other. Independent of the duration model.

Copies share the throttle of each side of a broker, or what its network carries. A run has its own efficiency, each
copy its own delay until it is in the ISR and seen there, and the cluster is busier at some times than at others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_rebalance.model.run_record import RunRecord, StepRecord
from kafka_rebalance.model.topology import BrokerId, TopicPartition

MB = 1_000_000


@dataclass
class _Copy:
    number: int
    size: float
    source: int
    into: int
    left: float
    begun: float
    copies_in: int
    copies_out: int
    joins: float | None = None


def some_runs(count: int, seed: int, start: datetime) -> list[RunRecord]:
    """Runs of one cluster of eight brokers: 10 to 300 partitions, P 1 to 100, three in four with a throttle."""
    rng = random.Random(seed)
    network = rng.uniform(80, 150) * MB
    return [_run(number, rng, network, start + timedelta(hours=6 * number)) for number in range(count)]


def _run(number: int, rng: random.Random, network: float, start: datetime) -> RunRecord:
    rate = rng.choice((None, 5 * MB, 10 * MB, 20 * MB, 50 * MB))
    parallel = rng.choice((1, 2, 5, 10, 20, 50, 100))
    carries = network * rng.uniform(0.85, 1.05) if rate is None else min(rate * rng.gauss(0.9, 0.03), network)
    typical = 10 ** rng.uniform(7, 9)
    brokers, fresh = range(8), rng.sample(range(8), rng.choice((1, 2, 4)))
    waiting = []
    for partition in range(int(10 ** rng.uniform(1, 2.5))):
        into = rng.choice(fresh)
        source = rng.choice([b for b in brokers if b != into])
        waiting.append((partition, typical * rng.lognormvariate(0, 0.8), source, into))
    now, flying, steps = 0.0, list[_Copy](), list[StepRecord]()
    while waiting or flying:
        while waiting and len(flying) < parallel:
            use = [_use(flying, source, into) for _, _, source, into in waiting]
            partition, size, source, into = waiting.pop(use.index(min(use)))
            copies_in = 1 + sum(c.into == into for c in flying)
            copies_out = 1 + sum(c.source == source for c in flying)
            flying.append(_Copy(partition, size, source, into, size, now + rng.uniform(0, 1), copies_in, copies_out))
        out, inwards = [sum(c.source == b and c.left > 0 for c in flying) for b in brokers], [0] * 8
        for copy in flying:
            inwards[copy.into] += copy.left > 0
        speed = [carries / max(out[c.source], inwards[c.into]) if c.left > 0 else 0.0 for c in flying]
        ends = [c.left / s if s else (c.joins or now) - now for c, s in zip(flying, speed, strict=True)]
        ends = [max(end, c.begun - now) if c.left == c.size else end for end, c in zip(ends, flying, strict=True)]
        passed = max(1e-6, min(ends))
        now += passed
        for copy, pace in zip(flying, speed, strict=True):
            copy.left = max(0.0, copy.left - pace * passed)
            if copy.left < 1 and copy.joins is None:
                copy.left, copy.joins = 0.0, now + rng.uniform(0.5, 2.0) + rng.uniform(0, 1)
        arrived = [c for c in flying if c.joins is not None and c.joins <= now + 1e-6]
        flying = [c for c in flying if c not in arrived]
        steps += [_step(copy, rate, start, now) for copy in arrived]
    return RunRecord(
        cluster_id="c1",
        namespace="kafka",
        name="r",
        run_id=f"run-{number:04d}",
        plan_hash=f"sha256:{number}",
        outcome="Succeeded",
        complete=True,
        started_at=start,
        ended_at=start + timedelta(seconds=now),
        active_seconds=now,
        parallel_replicas=1,
        parallel_partitions=parallel,
        parallel_leader_movements=20,
        limits_changed=False,
        steps=tuple(steps),
    )


def _use(flying: list[_Copy], source: int, into: int) -> int:
    return max(sum(c.source == source for c in flying), sum(c.into == into for c in flying))


def _step(copy: _Copy, rate: int | None, start: datetime, now: float) -> StepRecord:
    return StepRecord(
        tp=TopicPartition("t", copy.number),
        started_at=start + timedelta(seconds=copy.begun),
        ended_at=start + timedelta(seconds=now),
        bytes_copied=round(copy.size),
        source=BrokerId(copy.source),
        destinations=(BrokerId(copy.into),),
        leader_rate=rate,
        follower_rate=rate,
        rate_changed=False,
        copies_in=copy.copies_in,
        copies_out=copy.copies_out,
    )
