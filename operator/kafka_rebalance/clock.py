"""The clock that callers pass in. Nothing below ``app`` reads the time by itself."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time and monotonic time."""

    def now(self) -> datetime:
        """Wall time, aware, for people and for the stores."""

    def monotonic(self) -> float:
        """Seconds, for intervals."""
