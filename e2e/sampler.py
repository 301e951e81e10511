"""What is in flight, looked at again and again while a test goes on: a cap that is held must hold at every look."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Self

from e2e.bench.judge import Key
from e2e.bench.waiting import wait_until

Listing = Callable[[], AbstractContextManager[Callable[[], dict[Key, tuple[int, ...]]]]]
"""Opens a connection and gives a function that lists what each reassignment is adding."""


class Sampler:
    """Lists what is in flight of some topics, or of all, every tenth of a second; its own failure fails the test."""

    def __init__(self, listing: Listing, topics: Sequence[str]) -> None:
        self._listing = listing
        self._topics = topics
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")
        self._failure: BaseException | None = None
        self.seen: list[dict[Key, tuple[int, ...]]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise RuntimeError("the sampler broke down") from self._failure

    @property
    def most_partitions(self) -> int:
        """The most partitions that were in flight at once."""
        return max((len(rows) for rows in self.seen), default=0)

    @property
    def most_replicas(self) -> int:
        """The most replicas that were added to one partition at once."""
        return max((len(adding) for rows in self.seen for adding in rows.values()), default=0)

    def wait_more(self, count: int) -> None:
        """Wait for so many more looks."""
        goal = len(self.seen) + count
        wait_until(f"{count} more looks", lambda: len(self.seen) >= goal or self._failure)

    def _run(self) -> None:
        try:
            with self._listing() as ask:
                while not self._stop.is_set():
                    of = self._topics
                    self.seen.append({key: adding for key, adding in ask().items() if not of or key[0] in of})
                    self._stop.wait(0.1)
        except Exception as error:  # noqa: BLE001 - told by __exit__, whatever it is
            self._failure = error
