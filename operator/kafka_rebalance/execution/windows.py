"""When new steps may start: maintenance windows from cron expressions, in the local time of a zone. Pure.

A window opens at each time of its expression and stays open for its duration, which is elapsed time: five hours are
five hours when the clocks change, too. Overlapping windows unite.

The library follows Debian's cron when the clocks change. A fixed time (neither minute nor hour begins with ``*``) that
is skipped occurs at the first minute after the gap, and one that is repeated occurs once. Expressions with a ``*``
there follow the clock: skipped times do not occur, repeated ones occur twice. Day of month and day of week must both
match if one of them begins with ``*``, else one of them is enough.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Cron's names for common times, with their five fields."""
_FIELDS = "minute hour day-of-month month day-of-week"
_LONGEST_SECONDS = 366 * 86400
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_IN_SIGHT = timedelta(days=2)
_NEAR = timedelta(hours=1)
_MANY = 3_000
"""Openings of all windows that are looked at beyond the next hour. More would take long: 20 windows that open every
minute open 57,600 times in two days."""
_REMEMBERED = 1000
"""Edited windows leave an answer behind."""


@dataclass(frozen=True, slots=True)
class Window:
    """Open from each time of ``cron`` (five fields or a macro) in the IANA ``time_zone`` for ``duration_seconds``."""

    cron: str
    duration_seconds: int
    time_zone: str


@dataclass(frozen=True, slots=True)
class Open:
    """Steps may start. ``until``: the moment from which they may not, in UTC.

    None: not within the next two days. If the windows open very often, it may be later than an hour from now only.
    """

    until: datetime | None


@dataclass(frozen=True, slots=True)
class Shut:
    """No step may start. ``opens_at``: the next opening, in UTC; None: there is none within fifty years."""

    opens_at: datetime | None


def check(window: Window) -> None:
    """Raise ValueError that names what is wrong with the window."""
    if not 0 < window.duration_seconds <= _LONGEST_SECONDS:
        raise ValueError(f"duration of {window.duration_seconds} s: it must be above zero and at most 366 days")
    if next(_times(window, _ANY_TIME), None) is None:
        raise ValueError(f"cron {window.cron!r}: no day ever matches")


def window_at(windows: Sequence[Window], now: datetime) -> Open | Shut:
    """Whether steps may start at ``now`` (aware), and when that changes; without windows always.

    Raises ValueError for a bad expression or an unknown zone, as ``check`` does, and TypeError for a naive time.
    """
    if not windows:
        return Open(None)
    until = now
    for count, (start, end) in enumerate(heapq.merge(*(_spans(window, now) for window in windows))):
        if start > until:
            return Open(until) if until > now else Shut(start)
        if start > now + (_IN_SIGHT if count < _MANY else _NEAR):
            return Open(None)
        until = max(until, end)
    return Open(until) if until > now else Shut(None)


class WindowClock:
    """``window_at`` for questions that are asked again in every round: computed only when its answer may have changed.

    Many overlapping windows that open every minute take 20 ms to compute.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Window, ...], tuple[datetime, datetime, Open | Shut]] = {}

    def at(self, windows: Sequence[Window], now: datetime) -> Open | Shut:
        """As ``window_at``. An answer without a next change is an hour old at most."""
        key = tuple(windows)
        if (known := self.known(key, now)) is not None:
            return known
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        found = window_at(key, now)
        change = found.until if isinstance(found, Open) else found.opens_at
        self._known[key] = now, change or now + _NEAR, found
        return found

    def known(self, windows: Sequence[Window], now: datetime) -> Open | Shut | None:
        """The answer, if it was computed before and cannot have changed."""
        begin, end, found = self._known.get(tuple(windows), (now, now, None))
        return found if begin <= now < end else None


def _spans(window: Window, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """When the window opens and closes, in order: the last opening up to ``now``, and all that follow."""
    duration = timedelta(seconds=window.duration_seconds)
    # In a repeated hour this may be an earlier opening; the later ones follow below.
    latest = next(_times(window, now, back=True), None)
    if latest is not None:
        yield latest, latest + duration
    for time in _times(window, latest or now):
        yield time, time + duration


def _times(window: Window, start: datetime, *, back: bool = False) -> Iterator[datetime]:
    """The times of the expression after ``start``, or before it, in UTC (local times of one zone compare by the clock).

    Ends if there is none for fifty years. Raises ValueError for a bad expression or an unknown zone.
    """
    fields = MACROS.get(window.cron, window.cron)
    count = len(fields.split())
    if count != len(_FIELDS.split()):  # the library takes a sixth field for seconds
        raise ValueError(f"cron {window.cron!r}: {count} fields instead of five: {_FIELDS}")
    try:
        zone = ZoneInfo(window.time_zone)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"time zone {window.time_zone!r} is not known; it is a name like Europe/Berlin") from error
    try:
        times = CronSim(fields, start.astimezone(zone), reverse=back)
    except (CronSimError, ValueError) as error:
        raise ValueError(f"cron {window.cron!r}: {str(error).lower()}") from error
    return (time.astimezone(UTC) for time in times)
