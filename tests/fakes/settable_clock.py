"""A monotonic clock, to be called, whose time is what a test sets."""


class SettableClock:
    """``now``: in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
