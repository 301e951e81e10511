"""How fast other partitions of a restarted broker catch up, with and without a throttled rebalance."""

import statistics
import threading
import time
from dataclasses import asdict, dataclass

from e2e.bench.load import fill
from e2e.bench.waiting import wait_until
from e2e.world import World

from benchmarks.throttle_flow import size_of
from benchmarks.throttle_report import Section, spread
from benchmarks.throttle_stage import MEGABYTE, drop, moving

THROTTLE = 20
"""Megabytes per second."""
PAIRS = 4
MISSED_BYTES = 500 * MEGABYTE
"""Bytes that are written while the broker is down."""
PARTITIONS = 6
SOURCE, DESTINATION, RESTARTED = 1, 2, 3
MOVED_PARTITIONS = 12
MOVED_SECONDS = 90


@dataclass(frozen=True)
class CatchUp:
    """One restart of the broker."""

    seconds: float
    """From its first fetched byte until all its replicas are in sync."""
    moved: int
    """Bytes per second of the rebalance during the catch-up."""


def catch_up(world: World, _idle: float) -> Section:
    """Restart a broker that is no source of the moves, but one of their destinations."""
    size = THROTTLE * MEGABYTE * MOVED_SECONDS // MOVED_PARTITIONS
    moved = world.topic("moved", [[SOURCE]] * MOVED_PARTITIONS, size)
    pairs = []
    for number in range(PAIRS):
        runs = {busy: _return(world, moved, busy) for busy in ((True, False) if number % 2 else (False, True))}
        pairs.append({"with": asdict(runs[True]), "without": asdict(runs[False])})
    drop(world, moved)
    busy, still = ([pair[when]["seconds"] for pair in pairs] for when in ("with", "without"))
    ratios = [one / other for one, other in zip(busy, still, strict=True)]
    rate = [MISSED_BYTES / MEGABYTE / statistics.median(times) for times in (still, busy)]
    moving_on = spread([pair["with"]["moved"] / MEGABYTE for pair in pairs], 1)
    rows = [
        ["seconds to catch up", spread(still), spread(busy), spread(ratios)],
        ["MB/s of them", f"{rate[0]:.0f}", f"{rate[1]:.0f}", ""],
        ["MB/s of the rebalance meanwhile", "", moving_on, ""],
    ]
    note = (
        f"{MISSED_BYTES // MEGABYTE} MB in {PARTITIONS} partitions of another topic, written while one of its two "
        f"brokers was away; meanwhile a topic moves from the other one to two brokers, the restarted one among them, "
        f"at {THROTTLE} MB/s; {PAIRS} pairs."
    )
    columns = ("other partitions", "without", "with a rebalance", "ratio within a pair")
    return Section("Catching up beside a throttled rebalance", note, columns, rows, pairs)


def _return(world: World, moved: str, busy: bool) -> CatchUp:
    others = world.topic("others", [[SOURCE, RESTARTED]] * PARTITIONS, 1_000)
    try:
        if not busy:
            begin, end = _away_and_back(world, others)
            return CatchUp(round(end - begin, 2), 0)
        with moving(world, moved, [DESTINATION, RESTARTED], THROTTLE) as (_, flow):
            begin, end = _away_and_back(world, others)
            flow.wait_until(end)
            return CatchUp(round(end - begin, 2), round(flow.rate(begin, end)))
    finally:
        drop(world, others)


def _away_and_back(world: World, topic: str) -> tuple[float, float]:
    """Stop the broker, write, start it; the times of its first fetched byte and of all replicas in sync."""
    kafka = world.kafka
    kafka.stop(RESTARTED)
    fill(kafka, {(topic, partition): MISSED_BYTES // PARTITIONS for partition in range(PARTITIONS)})
    replicas = [kafka.directory / f"{RESTARTED}-data" / f"{topic}-{partition}" for partition in range(PARTITIONS)]
    had = sum(size_of(replica) for replica in replicas)
    admin = kafka.admin(kafka.address(SOURCE))

    def in_sync() -> bool:
        return all(RESTARTED in found.isrs for found in admin.list_topics(topic).topics[topic].partitions.values())

    starting = threading.Thread(target=kafka.start_brokers, args=(RESTARTED,))
    starting.start()
    wait_until("the broker fetches", lambda: sum(size_of(one) for one in replicas) > had, every=0.02)
    begin = time.monotonic()
    wait_until("the broker is in sync", in_sync, timeout=300, every=0.05)
    end = time.monotonic()
    starting.join()
    return begin, end
