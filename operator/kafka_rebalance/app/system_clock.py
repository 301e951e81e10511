"""The clock of the process, which the layers below get as an argument."""

import asyncio
import time
from datetime import UTC, datetime

# Linux's monotonic clock stops while the machine is suspended; a lease does not.
_INTERVALS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Wall time, aware."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds, for intervals; continues while the process is stopped or the machine suspended."""
        return time.clock_gettime(_INTERVALS)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
