"""Bytes, rates and durations: parsing and formatting; and the first of many names.

Quantities are Kubernetes' (``50Mi``, ``1.5Ti``, ``1048576``) and positive; bytes are bytes, rates are bytes per second,
durations are seconds.
"""

import re
from collections.abc import Sequence
from fractions import Fraction

_SUFFIX = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3}(?=[A-Za-z]))?)(k|M|G|T|Ki|Mi|Gi|Ti)?")
_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")
_OTHER_UNITS = re.compile(r"([0-9.]+) ?([kKmMgGtT])(i?)[bB]?(?:/s|ps)?")


def parse_quantity(value: int | str) -> int:
    """``50Mi`` -> 52428800; fractions of a byte are dropped. ValueError says what to write instead."""
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a quantity")
    if isinstance(value, int):
        if value < 0:
            raise ValueError(f"{value} is negative")
        return value
    match = _QUANTITY.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a quantity like 50Mi or 1048576{_meant(value)}")
    return int(Fraction(match[1]) * _SUFFIX[match[2] or ""])


def _meant(value: str) -> str:
    """What other tools write as 50MB or 50mib, in the suffixes of Kubernetes."""
    other = _OTHER_UNITS.fullmatch(value.strip())
    if other is None:
        return ""
    number, letter = other[1], other[2].upper()
    decimal = f"{number}{letter.replace('K', 'k')} (decimal) or " if not other[3] else ""
    return f": write {decimal}{number}{letter}i{' (binary)' if decimal else ''}"


def parse_duration(value: str) -> int:
    """``1h30m`` -> 5400 seconds. ValueError for anything but days, hours, minutes and seconds, in that order."""
    match = _DURATION.fullmatch(value.strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"{value!r} is not a duration like 15m, 1h30m or 2d")
    days, hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds


def format_bytes(count: float) -> str:
    """1572864 -> ``1.5 MiB``: three significant digits, binary units."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def format_rate(bytes_per_second: float) -> str:
    """52428800 -> ``50.0 MiB/s``."""
    return f"{format_bytes(bytes_per_second)}/s"


def format_duration(seconds: float) -> str:
    """3725 -> ``1h2m``: the two largest units."""
    total = max(0, round(seconds))
    days, rest = divmod(total, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (secs, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return "".join(f"{value}{unit}" for value, unit in parts[:2] if value or unit == parts[0][1])


def format_duration_range(shortest: float, longest: float) -> str:
    """(725, 1490) -> ``12m-25m``; one value where both read the same.

    Rounded so that it does not change with every update: to 10 seconds, from a minute on to minutes, from an hour on to
    10 minutes, from a day on to hours.
    """
    ends = [format_duration(_coarse(seconds)) for seconds in (shortest, longest)]
    return ends[0] if ends[0] == ends[1] else "-".join(ends)


def _coarse(seconds: float) -> int:
    """Rounded as above; zero only for zero."""
    if seconds <= 0:
        return 0
    step = next((step for below, step in ((60, 10), (3600, 60), (86400, 600)) if seconds < below), 3600)
    return max(1, round(seconds / step)) * step


def few(things: Sequence[object], most: int = 3) -> str:
    """The first ones, and how many more there are: ``a, b, c and 2 more``."""
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return ", ".join(map(str, things[:most])) + more
