"""Seconds from a `kubectl patch` of the rate until the config is set in Kafka, and until the traffic changes."""

import threading
import time
from dataclasses import asdict, dataclass

from confluent_kafka.admin import ConfigResource, ResourceType
from e2e.bench.watching import Watcher
from e2e.rebalance import Rebalance
from e2e.world import FOLLOWER_RATE, LEADER_RATE, World

from benchmarks.throttle_flow import Flow, Look
from benchmarks.throttle_report import Section, spread
from benchmarks.throttle_stage import MEGABYTE, drop, moving, throttle

SLOW, FAST = 2, 20
"""Megabytes per second."""
SOURCE, DESTINATION = 1, 2
CHANGES = 6
"""Number of increases, and of decreases."""
SETTLING_SECONDS = 14
"""Wait after a change: Kafka's quota covers eleven seconds, in which a lowered rate blocks all traffic."""
WINDOW_SECONDS = 0.5
PAUSE_SECONDS = 3


@dataclass(frozen=True)
class Reaction:
    """Seconds since the start of `kubectl patch`."""

    patched: float
    """kubectl has returned: the API server has the new rate."""
    configured: float
    """Both brokers return the new rate."""
    on_the_wire: float
    """End of the first half second with at least half of the faster rate; for a decrease, of the last one."""


def reaction(world: World, _idle: float) -> Section:
    """One partition that moves between two brokers, with alternating rates."""
    size = int((FAST + SLOW) * MEGABYTE * (SETTLING_SECONDS + 2) * CHANGES * 1.2)
    topic = world.topic("reaction", [[SOURCE]], size)
    up, down = [], []
    with moving(world, topic, [DESTINATION], SLOW) as (rebalance, flow):
        flow.wait_until(flow.begun() + SETTLING_SECONDS)
        for _ in range(CHANGES):
            up.append(_change(world, rebalance, flow, SLOW, FAST))
            down.append(_change(world, rebalance, flow, FAST, SLOW))
    drop(world, topic)
    rows = [_row(f"{SLOW} to {FAST} MB/s", up), _row(f"{FAST} to {SLOW} MB/s", down)]
    note = (
        f"{CHANGES} changes each way, {SETTLING_SECONDS} s apart, of one partition moving between two brokers. On the "
        f"wire: the end of the first, or of the last, {WINDOW_SECONDS} s that carry half of the faster rate or more."
    )
    columns = ("change", "kubectl has ended, s", "both brokers report it, s", "on the wire, s")
    values = {"up": [asdict(one) for one in up], "down": [asdict(one) for one in down]}
    return Section("From kubectl patch to the new rate", note, columns, rows, values)


def _row(name: str, changes: list[Reaction]) -> list[str]:
    seconds = zip(*((one.patched, one.configured, one.on_the_wire) for one in changes), strict=True)
    return [name, *(spread(values) for values in seconds)]


def _change(world: World, rebalance: Rebalance, flow: Flow, before: int, after: int) -> Reaction:
    with _Told(world, after * MEGABYTE) as told:
        begin = time.monotonic()
        rebalance.patch(throttle=throttle(after))
        patched = time.monotonic()
        configured = told.wait()
    flow.wait_until(configured + SETTLING_SECONDS)
    ends = _fast_half_seconds(flow.looks, begin - PAUSE_SECONDS)
    wire = next((end for end in ends if end > begin), begin) if after > before else _last_without_pause(ends, begin)
    return Reaction(*(round(moment - begin, 2) for moment in (patched, configured, wire)))


def _last_without_pause(ends: list[float], begin: float) -> float:
    """The last end before a pause: traffic after the pause is the first burst at the new rate."""
    last = begin
    for end in ends:
        if begin < end <= last + PAUSE_SECONDS:
            last = end
    return last


def _fast_half_seconds(looks: list[Look], since: float) -> list[float]:
    """Ends of the half seconds in which at least half of the faster rate was copied; one per sample."""
    recent = [look for look in looks if look.at >= since]
    least = FAST * MEGABYTE * WINDOW_SECONDS / 2
    ends = []
    for at, look in enumerate(recent):
        first = next((other for other in recent[:at] if look.at - other.at <= WINDOW_SECONDS), look)
        if look.total - first.total >= least:
            ends.append(look.at)
    return ends


class _Told(Watcher):
    """Queries both brokers until each returns the new rate of its side."""

    def __init__(self, world: World, rate: int) -> None:
        super().__init__("told")
        self._admin = world.kafka.admin()
        self._rate = str(rate)
        self._wanted = {SOURCE: LEADER_RATE, DESTINATION: FOLLOWER_RATE}
        self._seen = 0.0

    def wait(self) -> float:
        """The time at which both returned it."""
        self.wait_over(60)
        if not self._seen:
            raise RuntimeError(f"after 60 s the brokers do not report {self._rate}")
        return self._seen

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(0.02):
            if all(self._tells(broker, name) for broker, name in self._wanted.items()):
                self._seen = time.monotonic()
                return

    def _tells(self, broker: int, name: str) -> bool:
        resource = ConfigResource(ResourceType.BROKER, str(broker))
        entry = self._admin.describe_configs([resource])[resource].result(timeout=30).get(name)
        return entry is not None and entry.value == self._rate
