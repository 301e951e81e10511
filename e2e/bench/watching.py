"""Watching something in its own thread while a `with` lasts."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class Watcher(ABC):
    """Watches until the `with` ends; any exception in the thread is raised there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._guarded, name=name, daemon=True)
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise RuntimeError(f"the {self._name} broke down") from self._failure

    @property
    def over(self) -> bool:
        """Whether it is not watching: it failed, has seen enough, or was not started."""
        return not self._thread.is_alive()

    def wait_over(self, timeout: float) -> None:
        """Wait until it has seen enough, or has failed; at most this many seconds."""
        self._thread.join(timeout)

    @abstractmethod
    def _watch(self, stop: threading.Event) -> None:
        """Poll until `stop` is set, or until enough is seen."""

    def _guarded(self) -> None:
        try:
            self._watch(self._stop)
        except Exception as error:  # noqa: BLE001 - __exit__ raises any exception again
            self._failure = error
