"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


class StoppedClock:
    """``at`` is the wall clock; ``monotonic`` counts the seconds since noon."""

    def __init__(self, at=NOON):
        self.at = at

    def now(self):
        return self.at

    def monotonic(self):
        return (self.at - NOON).total_seconds()
