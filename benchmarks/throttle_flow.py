"""Bytes of a moving topic that have been copied, from the size of its files on the brokers' disks.

It reads the disks and does not query the brokers: this causes no load on them and is always up to date.
"""

import bisect
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.bench.kafka import KafkaCluster
from e2e.bench.waiting import wait_until
from e2e.bench.watching import Watcher

EVERY = 0.1
"""Seconds between two samples."""


@dataclass(frozen=True)
class Look:
    """Bytes copied by the time `at` (`time.monotonic`): from each broker, and to each broker."""

    at: float
    sent: Mapping[int, int]
    received: Mapping[int, int]

    @property
    def total(self) -> int:
        """All copied bytes."""
        return sum(self.received.values())


class Flow(Watcher):
    """Samples a topic's replicas ten times per second. Replicas that exist at the start do not count as copies."""

    def __init__(self, cluster: KafkaCluster, topic: str) -> None:
        super().__init__("flow")
        self._dirs = {broker: cluster.directory / f"{broker}-data" for broker in cluster.brokers}
        self._prefix = f"{topic}-"
        self._origins = {partition: broker for broker, partition in self._replicas()}
        self._looks: list[Look] = []

    @property
    def looks(self) -> list[Look]:
        """All samples so far."""
        return self._looks.copy()

    def begun(self) -> float:
        """The time of the first copied byte; waits for it."""
        wait_until("the copying begins", lambda: self.looks and self.looks[-1].total, timeout=120)
        return next(look.at for look in self.looks if look.total)

    def wait_until(self, moment: float) -> None:
        """Wait for a sample after that time."""
        wait_until("the files are looked at", lambda: self.looks and self.looks[-1].at > moment, timeout=600)

    def rate(self, begin: float, end: float) -> float:
        """Bytes per second that were copied between two times."""
        first, last = (next(look for look in self.looks if look.at >= moment) for moment in (begin, end))
        return (last.total - first.total) / max(EVERY, last.at - first.at)

    def copied_now(self) -> int:
        """Bytes of all copies now."""
        return self._look().total

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(EVERY):
            self._looks.append(self._look())

    def _look(self) -> Look:
        sent: Counter[int] = Counter()
        received: Counter[int] = Counter()
        now = time.monotonic()
        for (broker, partition), size in self._replicas().items():
            origin = self._origins[partition]
            if broker != origin:
                sent[origin] += size
                received[broker] += size
        return Look(now, sent, received)

    def _replicas(self) -> dict[tuple[int, int], int]:
        """Bytes by broker and partition."""
        found = {}
        for broker, directory in self._dirs.items():
            for replica in directory.iterdir():
                partition = replica.name.removeprefix(self._prefix)
                # The directory of a replica that is being deleted has a longer name.
                if replica.name.startswith(self._prefix) and partition.isdecimal():
                    found[broker, int(partition)] = size_of(replica)
        return found


def size_of(replica: Path) -> int:
    """Bytes of a replica's log; 0 if it does not exist."""
    try:
        with os.scandir(replica) as entries:
            return sum(entry.stat().st_size for entry in entries if entry.name.endswith(".log"))
    except FileNotFoundError:
        return 0


def window_rates(
    looks: Sequence[Look], side: Callable[[Look], int], begin: float, end: float, length: float
) -> list[float]:
    """Bytes per second in each window of `length` seconds between begin and end; a window starts every second."""
    times = [look.at for look in looks]

    def at(moment: float) -> Look:
        return looks[bisect.bisect_left(times, moment)]

    starts = [begin + second for second in range(int(end - begin - length) + 1)]
    windows = [(at(start), at(start + length)) for start in starts]
    return [(side(last) - side(first)) / (last.at - first.at) for first, last in windows]
