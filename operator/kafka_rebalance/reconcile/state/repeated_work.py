"""Work that any number of others ask for: it is done once at a time, and once more for all who asked meanwhile."""

import asyncio
from asyncio import sleep
from collections.abc import Awaitable, Callable

_REST = 4.0
"""The rest before it is done once more, as a multiple of the time that it took."""
_LONGEST_REST_SECONDS = 10.0


class RepeatedWork:
    """``work`` is begun after each call of ``ask``, but not for each."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._asked = False
        self._working = False

    async def ask(self) -> None:
        """Do the work, unless another caller does it: that one does it once more. Raises what ``work`` raises."""
        self._asked = True
        if self._working:
            return
        self._working = True
        try:
            while self._asked:
                self._asked = False
                began = asyncio.get_running_loop().time()
                await self._work()
                if self._asked:
                    took = asyncio.get_running_loop().time() - began
                    await sleep(min(_REST * took, _LONGEST_REST_SECONDS))
        finally:
            self._working = False
