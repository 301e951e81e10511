"""The events that the watch thread has read and the operator's loop has not handled yet.

Users choose how often they change a resource, and how large it is. So only the newest event of each resource waits, the
namespaces take turns, and after each slice the loop has as long for its other work as the slice took.
"""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

_SLICE_SECONDS = 0.01
"""A slice handles events for this long, and one event in any case."""


class WatchEvent(NamedTuple):
    """A resource was created or changed, or it is gone."""

    plural: str
    body: dict[str, Any]
    deleted: bool


class WaitingEvents:
    """Added in any thread, handled one after the other in the loop.

    A namespace's resources are handled in the order in which they began to wait, so the end of a resource comes before
    another one that was created under its name.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: Callable[[WatchEvent], None]) -> None:
        self._loop = loop
        self._handle = handle
        self._lock = threading.Lock()
        self._waiting = OrderedDict[str, dict[tuple[str, str], WatchEvent]]()
        """By namespace, in the order of their turns; then by plural and uid."""
        self._slice_ordered = False
        self._closed = False

    def add(self, event: WatchEvent) -> None:
        """Replace the event of this resource that waits, if any, except for its end: a uid never comes back."""
        metadata = event.body["metadata"]
        key = event.plural, metadata["uid"]
        with self._lock:
            if self._closed:
                return
            events = self._waiting.setdefault(metadata["namespace"], {})
            if key not in events or not events[key].deleted:
                events[key] = event
            ordered, self._slice_ordered = self._slice_ordered, True
        if not ordered:
            self._loop.call_soon_threadsafe(self._slice)

    async def close(self) -> None:
        """Handle all that wait, in slices without pauses. What is added later is ignored. Call it in the loop."""
        with self._lock:
            self._closed = True
        while self._waiting:
            self._handle_some()
            await asyncio.sleep(0)

    def _slice(self) -> None:
        began = self._loop.time()
        try:
            self._handle_some()
        finally:
            with self._lock:
                self._slice_ordered = bool(self._waiting)
                if self._slice_ordered:
                    self._loop.call_later(self._loop.time() - began, self._slice)

    def _handle_some(self) -> None:
        end = self._loop.time() + _SLICE_SECONDS
        while (event := self._next()) is not None:
            self._handle(event)
            if self._loop.time() >= end:
                return

    def _next(self) -> WatchEvent | None:
        with self._lock:
            if not self._waiting:
                return None
            namespace, events = self._waiting.popitem(last=False)
            event = events.pop(next(iter(events)))
            if events:
                self._waiting[namespace] = events
            return event
