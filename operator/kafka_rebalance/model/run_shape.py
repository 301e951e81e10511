"""What decides how long a run takes: the bytes through each broker's pipes, and its steps. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kafka_rebalance.model.topology import BrokerId, Replicas


class Flow(NamedTuple):
    """Bytes, and the rate (bytes per second) that limits them; None: not throttled."""

    amount: float
    rate: int | None


class CopyStep(NamedTuple):
    """One call that copies a partition: bytes of one copy, and the rates of its brokers."""

    size_bytes: int
    source: BrokerId | None
    destinations: Replicas
    leader_rate: int | None
    follower_rates: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class RunShape:
    """``pipes``: the bytes that each side of each broker carries.

    ``alone``: the bytes that the steps would carry one after the other. At most ``parallel`` of the ``steps`` are in
    flight at the same time.
    """

    pipes: tuple[Flow, ...]
    alone: tuple[Flow, ...]
    steps: int
    parallel: int


def shape_of(steps: Iterable[CopyStep], parallel: int) -> RunShape:
    """A leader sends every copy of a step, and each destination fetches one."""
    pipes: Counter[tuple[BrokerId, str, int | None]] = Counter()
    alone: defaultdict[int | None, float] = defaultdict(float)
    count = 0
    for step in steps:
        count += 1
        copies = len(step.destinations)
        if step.source is not None:
            pipes[step.source, "out", step.leader_rate] += copies * step.size_bytes
        for broker, rate in zip(step.destinations, step.follower_rates, strict=True):
            pipes[broker, "in", rate] += step.size_bytes
        sides = [Flow(copies * step.size_bytes, step.leader_rate)]
        sides += [Flow(step.size_bytes, rate) for rate in step.follower_rates]
        slowest = max(sides, key=lambda flow: flow.amount / flow.rate if flow.rate else 0.0)
        alone[slowest.rate] += slowest.amount
    return RunShape(
        pipes=tuple(Flow(amount, rate) for (_, _, rate), amount in sorted(pipes.items(), key=str)),
        alone=tuple(Flow(amount, rate) for rate, amount in alone.items()),
        steps=count,
        parallel=max(1, min(parallel, count)),
    )
