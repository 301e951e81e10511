"""The rate that each broker achieves, compared with the configured rate and with the rate of Kafka's own tool.

Brokers do not keep a rate exactly; the comparison separates this from the effect of the operator.
"""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from e2e.world import World

from benchmarks.throttle_flow import Flow, Look, window_rates
from benchmarks.throttle_report import Section, spread
from benchmarks.throttle_stage import MEGABYTE, drop, moved_by_kafka, moving

WINDOW_SECONDS = {5: 60, 20: 30, 50: 20}
"""By megabytes per second: bytes arrive in fetches of 10 MB, and a window should contain at least thirty of them."""
FASTEST = max(WINDOW_SECONDS)
PARTITIONS = 12
SETTLING_SECONDS = 15
"""Not counted: Kafka's quota uses eleven samples of one second, and the bytes of the first second are not throttled."""
MORE_SECONDS = 15
"""Measured beyond the first window: another window starts every second."""
TOLERANCE = 0.1
IDLE_CORES = 1.5
"""Idle cores required for the fastest rate."""

Side = Callable[[Look], int]


@dataclass(frozen=True)
class Shape:
    """Source and destination brokers of the moves; one replica of each partition moves."""

    name: str
    sources: tuple[int, ...]
    destinations: tuple[int, ...]

    def sides(self) -> Iterator[tuple[str, Side, bool]]:
        """Both sides of each broker: its bytes, and whether its rate is the limit.

        If several brokers send to one, or one sends to several, only that one reaches its rate; the others have a share
        of it.
        """
        for broker in self.sources:
            binds = len(self.sources) <= len(self.destinations)
            yield f"leader {broker}", lambda look, b=broker: look.sent.get(b, 0), binds
        for broker in self.destinations:
            binds = len(self.destinations) <= len(self.sources)
            yield f"follower {broker}", lambda look, b=broker: look.received.get(b, 0), binds


SHAPES = (
    Shape("one to one", (1,), (2,)),
    Shape("three to one", (1, 2, 3), (4,)),
    Shape("one to three", (1,), (2, 3, 4)),
)


def achieved_rates(world: World, idle: float) -> Section:
    """Each shape at each rate, sequentially."""
    rates = [rate for rate in WINDOW_SECONDS if rate < FASTEST or idle >= IDLE_CORES]
    rows, values = [], []
    # 10 % more than can be copied in that time.
    most = max(rate * (SETTLING_SECONDS + WINDOW_SECONDS[rate] + MORE_SECONDS) for rate in rates)
    size = int(most * MEGABYTE * 1.1) // PARTITIONS
    for shape in SHAPES:
        topic = world.topic("rates", [[shape.sources[at % len(shape.sources)]] for at in range(PARTITIONS)], size)
        for rate in rates:
            with moving(world, topic, shape.destinations, rate) as (_, flow):
                found = _measure(flow, shape, rate)
            with moved_by_kafka(world, topic, shape.destinations, rate) as flow:
                theirs = _measure(flow, shape, rate)
            moves = {"moves": shape.name, "configuredBytesPerSecond": rate * MEGABYTE}
            values.append({**moves, "windows": found, "windowsOfKafkasTool": theirs})
            rows += [_row(shape, rate, side, found[side], theirs[side], binds) for side, _, binds in shape.sides()]
        drop(world, topic)
    skipped = "" if FASTEST in rates else f" {FASTEST} MB/s was left out: only {idle:.1f} cores were idle before."
    lengths = ", ".join(f"{WINDOW_SECONDS[rate]} s at {rate} MB/s" for rate in rates)
    note = (
        f"{PARTITIONS} partitions of {size / MEGABYTE:.0f} MB, one replica each, all in flight at once. Bytes on disk "
        f"in {MORE_SECONDS + 1} windows that begin a second apart ({lengths}); the first {SETTLING_SECONDS} s are left "
        f"out.{skipped}"
    )
    columns = (
        *("moves", "configured MB/s", "side, broker", "MB/s", "median of configured", "all within 10 %"),
        *("Kafka's tool, MB/s", "ours / its median"),
    )
    return Section("Achieved rate", note, columns, rows, values)


def _measure(flow: Flow, shape: Shape, rate: int) -> dict[str, list[float]]:
    """Bytes per second in each window, for each side."""
    begin = flow.begun() + SETTLING_SECONDS
    end = begin + WINDOW_SECONDS[rate] + MORE_SECONDS
    flow.wait_until(end)
    looks = flow.looks
    return {
        name: [round(value) for value in window_rates(looks, side, begin, end, WINDOW_SECONDS[rate])]
        for name, side, _ in shape.sides()
    }


def _row(
    shape: Shape, rate: int, side: str, windows: list[float], windows_of_theirs: list[float], binds: bool
) -> list[str]:
    megabytes, theirs = ([value / MEGABYTE for value in found] for found in (windows, windows_of_theirs))
    verdict = "yes" if all(abs(value / rate - 1) <= TOLERANCE for value in megabytes) else "no"
    share = f"{statistics.median(megabytes) / rate:.0%}"
    against = f"{statistics.median(megabytes) / statistics.median(theirs):.2f}"
    told = verdict if binds else "has a share"
    return [shape.name, str(rate), side, spread(megabytes), share, told, spread(theirs), against]
