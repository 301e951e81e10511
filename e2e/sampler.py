"""Samples the reassignments in flight during a test: a cap must hold in every sample."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from e2e.bench.judge import Key
from e2e.bench.waiting import wait_until
from e2e.bench.watching import Watcher

Listing = Callable[[], AbstractContextManager[Callable[[], dict[Key, tuple[int, ...]]]]]
"""Opens a connection and yields a function that lists the replicas that each reassignment adds."""


class Sampler(Watcher):
    """Lists the reassignments of some topics, or of all, every tenth of a second; its own failure fails the test."""

    def __init__(self, listing: Listing, topics: Sequence[str]) -> None:
        super().__init__("sampler")
        self._listing = listing
        self._topics = topics
        self.seen: list[dict[Key, tuple[int, ...]]] = []

    @property
    def most_partitions(self) -> int:
        """The maximum number of partitions in flight."""
        return max((len(rows) for rows in self.seen), default=0)

    @property
    def most_replicas(self) -> int:
        """The maximum number of replicas added to one partition in parallel."""
        return max((len(adding) for rows in self.seen for adding in rows.values()), default=0)

    def wait_more(self, count: int) -> None:
        """Wait for this many more samples."""
        goal = len(self.seen) + count
        wait_until(f"{count} more looks", lambda: len(self.seen) >= goal or self.over)

    def _watch(self, stop: threading.Event) -> None:
        with self._listing() as ask:
            while not stop.is_set():
                of = self._topics
                self.seen.append({key: adding for key, adding in ask().items() if not of or key[0] in of})
                stop.wait(0.1)
