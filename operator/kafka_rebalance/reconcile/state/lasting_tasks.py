"""Tasks that must not fail: one that does is remembered by name, for the liveness probe.

A task may end by returning: it has done what it was for. A task that ends in any other way while the operator runs has
left its work undone. Nothing awaits it, so only a restart begins that work again.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class LastingTasks:
    """Starts tasks by name, and keeps the names of those that failed."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], str] = {}
        self._failed: list[str] = []

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the tasks that ended without returning, the first one first."""
        return tuple(self._failed)

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run it. ``name`` is a noun phrase that anybody may read: the probe shows it."""
        task = asyncio.create_task(coroutine)
        self._running[task] = name
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """Cancel all that run, and wait for their end. These have not failed."""
        tasks, self._running = list(self._running), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        name = self._running.pop(task, None)
        if name is None:
            return
        if task.cancelled() or task.exception() is not None:
            error = None if task.cancelled() else task.exception()
            log.error("%s has ended; only a restart begins it again", name, exc_info=error)
            self._failed.append(name)
