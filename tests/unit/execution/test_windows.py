"""When new steps may start: windows in local time, across midnight and clock changes."""

import functools
import importlib.resources
import zoneinfo
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from kafka_rebalance.execution.windows import Open, Shut, Window, WindowClock, check, window_at

BERLIN = "Europe/Berlin"
HOUR = 3600
MINUTE = timedelta(minutes=1)
NIGHT = Window("0 1 * * *", 5 * HOUR, BERLIN)


def utc(text):
    return datetime.fromisoformat(text).astimezone(UTC)


class TestNoWindows:
    def test_always_open(self):
        """Without windows there is no restriction and no end."""
        assert window_at([], utc("2026-06-10T12:00Z")) == Open(None)


class TestOneWindow:
    @pytest.mark.parametrize(
        ("now", "found"),
        [
            ("2026-06-10T00:59:59.999+02:00", Shut(utc("2026-06-10T01:00+02:00"))),
            ("2026-06-10T01:00+02:00", Open(utc("2026-06-10T06:00+02:00"))),
            ("2026-06-10T05:59:59.999+02:00", Open(utc("2026-06-10T06:00+02:00"))),
            ("2026-06-10T06:00+02:00", Shut(utc("2026-06-11T01:00+02:00"))),
            ("2026-06-10T23:00Z", Open(utc("2026-06-11T04:00Z"))),
        ],
    )
    def test_open_from_its_start_to_just_before_its_end(self, now, found):
        """The zone's local time counts; ``now`` may have any zone."""
        assert window_at([NIGHT], datetime.fromisoformat(now)) == found

    def test_answers_are_in_utc(self):
        """Local times would compare wrongly in an hour that occurs twice."""
        found = window_at([NIGHT], utc("2026-06-10T12:00Z"))
        assert found.opens_at.tzinfo is UTC

    def test_a_time_without_a_zone_is_refused(self):
        """It would silently be read as the local time of the machine."""
        with pytest.raises(TypeError):
            window_at([NIGHT], utc("2026-06-10T12:00Z").replace(tzinfo=None))

    @pytest.mark.parametrize(
        ("macro", "opens_at"),
        [
            ("@hourly", "2026-02-25T14:00+01:00"),
            ("@daily", "2026-02-26T00:00+01:00"),
            ("@midnight", "2026-02-26T00:00+01:00"),
            ("@weekly", "2026-03-01T00:00+01:00"),
            ("@monthly", "2026-03-01T00:00+01:00"),
            ("@yearly", "2027-01-01T00:00+01:00"),
            ("@annually", "2027-01-01T00:00+01:00"),
        ],
    )
    def test_crons_names_for_common_times(self, macro, opens_at):
        """From a Wednesday; a week begins with Sunday, as in cron."""
        assert window_at([Window(macro, 1800, BERLIN)], utc("2026-02-25T13:45+01:00")) == Shut(utc(opens_at))

    def test_over_midnight(self):
        """Its days are those on which it opens: Saturday morning still belongs to Friday's window."""
        friday = [Window("0 22 * * FRI", 8 * HOUR, BERLIN)]
        assert window_at(friday, utc("2026-06-13T03:00+02:00")) == Open(utc("2026-06-13T06:00+02:00"))
        assert window_at(friday, utc("2026-06-13T23:00+02:00")) == Shut(utc("2026-06-19T22:00+02:00"))

    def test_a_whole_weekend(self):
        """However far away the end is, it is found if no other window opens before it."""
        weekend = [Window("0 18 * * FRI", 60 * HOUR, BERLIN)]
        assert window_at(weekend, utc("2026-06-12T18:00+02:00")) == Open(utc("2026-06-15T06:00+02:00"))

    def test_a_long_way_to_the_next_opening(self):
        """29 February is years away; so is the latest opening in the past."""
        leap_day = [Window("0 0 29 2 *", 24 * HOUR, "UTC")]
        assert window_at(leap_day, utc("2025-06-10T12:00Z")) == Shut(utc("2028-02-29T00:00Z"))

    def test_one_that_never_opens(self):
        """There is no opening to wait for; ``check`` refuses it."""
        assert window_at([Window("* * */20 * 1L", HOUR, "UTC")], utc("2026-06-10T12:00Z")) == Shut(None)


class TestUnion:
    def test_windows_that_overlap_or_touch_are_one(self):
        """They end together with the last one."""
        both = [Window("0 1 * * *", 2 * HOUR, "UTC"), Window("30 2 * * *", 2 * HOUR, "UTC")]
        assert window_at(both, utc("2026-06-10T01:15Z")) == Open(utc("2026-06-10T04:30Z"))
        touching = [Window("0 1 * * *", 2 * HOUR, "UTC"), Window("0 3 * * *", 2 * HOUR, "UTC")]
        assert window_at(touching, utc("2026-06-10T01:15Z")) == Open(utc("2026-06-10T05:00Z"))

    def test_one_within_another_does_not_shorten_it(self):
        """The order of the list does not matter either."""
        both = [Window("0 1 * * *", 5 * HOUR, "UTC"), Window("0 2 * * *", HOUR, "UTC")]
        for windows in (both, both[::-1]):
            assert window_at(windows, utc("2026-06-10T02:30Z")) == Open(utc("2026-06-10T06:00Z"))

    def test_apart_they_open_one_after_the_other(self):
        """The next opening is the earliest of all."""
        apart = [Window("0 20 * * *", HOUR, "UTC"), Window("0 4 * * *", HOUR, "UTC")]
        assert window_at(apart, utc("2026-06-10T04:30Z")) == Open(utc("2026-06-10T05:00Z"))
        assert window_at(apart, utc("2026-06-10T05:00Z")) == Shut(utc("2026-06-10T20:00Z"))

    def test_in_different_zones(self):
        """03:00 in Berlin is 21:00 in New York."""
        both = [Window("0 1 * * *", 2 * HOUR, BERLIN), Window("0 21 * * *", HOUR, "America/New_York")]
        assert window_at(both, utc("2026-06-10T01:30+02:00")) == Open(utc("2026-06-10T04:00+02:00"))

    @pytest.mark.parametrize("duration", [HOUR, 3 * HOUR])
    def test_a_duration_not_below_the_period_never_closes(self, duration):
        """There is no end within two days."""
        assert window_at([Window("0 * * * *", duration, BERLIN)], utc("2026-06-10T12:34Z")) == Open(None)

    def test_of_windows_that_open_very_often(self):
        """The end is found an hour before it, because looking at all their openings takes long."""
        windows = [Window("* 0-20 * * *", 60 + seconds, "UTC") for seconds in range(20)]
        assert window_at(windows, utc("2026-06-10T00:30Z")) == Open(None)
        assert window_at(windows, utc("2026-06-10T17:30Z")) == Open(None)
        assert window_at(windows, utc("2026-06-10T20:01Z")) == Open(utc("2026-06-10T21:00:19Z"))

    def test_an_end_is_in_sight_for_two_days(self):
        """Every hour from Monday to Friday: on Monday no end is reported, on Thursday it is."""
        weekdays = [Window("0 * * * MON-FRI", HOUR, "UTC")]
        assert window_at(weekdays, utc("2026-06-08T12:00Z")) == Open(None)
        assert window_at(weekdays, utc("2026-06-11T12:00Z")) == Open(utc("2026-06-13T00:00Z"))

    def test_many_short_openings_are_one_long_one(self):
        """Every minute from 01:00 to 09:59."""
        found = window_at([Window("* 1-9 * * *", 60, "UTC")], utc("2026-06-10T01:30Z"))
        assert found == Open(utc("2026-06-10T10:00Z"))


class TestChangeOfClocks:
    """In Berlin 02:00 becomes 03:00 on 29 March 2026, and 03:00 becomes 02:00 on 25 October."""

    def test_a_duration_is_elapsed_time(self):
        """Five hours from 01:00 end at 07:00 local time in spring and at 05:00 in autumn."""
        assert window_at([NIGHT], utc("2026-03-29T04:00+02:00")) == Open(utc("2026-03-29T07:00+02:00"))
        assert window_at([NIGHT], utc("2026-10-25T04:00+01:00")) == Open(utc("2026-10-25T05:00+01:00"))

    def test_the_day_after_it_opens_by_the_new_clock(self):
        """The same local time at a different UTC time."""
        assert window_at([NIGHT], utc("2026-03-28T12:00Z")) == Shut(utc("2026-03-29T00:00Z"))
        assert window_at([NIGHT], utc("2026-03-29T12:00Z")) == Shut(utc("2026-03-29T23:00Z"))

    def test_a_fixed_time_that_is_skipped_comes_with_the_first_minute_after(self):
        """Debian's cron: a job in the skipped hour runs right after it."""
        half_past_two = [Window("30 2 * * *", HOUR, BERLIN)]
        assert window_at(half_past_two, utc("2026-03-29T01:00+01:00")) == Shut(utc("2026-03-29T03:00+02:00"))
        assert window_at(half_past_two, utc("2026-03-29T03:59+02:00")) == Open(utc("2026-03-29T04:00+02:00"))

    def test_a_fixed_time_that_comes_twice_opens_the_first_time_only(self):
        """Debian's cron: a job does not run twice. In the second hour, the first opening is still remembered."""
        half_past_two = [Window("30 2 * * *", 20 * 60, BERLIN)]
        assert window_at(half_past_two, utc("2026-10-25T02:35+02:00")) == Open(utc("2026-10-25T02:50+02:00"))
        for again in (utc("2026-10-25T02:15+01:00"), utc("2026-10-25T02:35+01:00")):
            for now in (again, again.astimezone(zoneinfo.ZoneInfo(BERLIN))):
                assert window_at(half_past_two, now) == Shut(utc("2026-10-26T02:30+01:00"))
        longer = [Window("30 2 * * *", 2 * HOUR, BERLIN)]
        assert window_at(longer, utc("2026-10-25T02:15+01:00")) == Open(utc("2026-10-25T03:30+01:00"))

    def test_an_expression_with_a_star_follows_the_clock(self):
        """Every half hour of an hour that occurs twice, twice; of an hour that is skipped, never."""
        every_half_hour = [Window("*/30 2 * * *", 600, BERLIN)]
        assert window_at(every_half_hour, utc("2026-10-25T02:35+01:00")) == Open(utc("2026-10-25T02:40+01:00"))
        assert window_at(every_half_hour, utc("2026-03-29T01:00+01:00")) == Shut(utc("2026-03-30T02:00+02:00"))


MINUTES, HOURS = ["*", "0", "30", "0,45", "10-50"], ["*", "0", "1", "2", "3", "23", "0-4", "1,2"]
DAYS = ["*", "SAT", "SUN", "MON-FRI", "SUN,MON"]
ZONES = {
    BERLIN: ("2026-03-29T01:00Z", "2026-10-25T01:00Z"),
    "America/New_York": ("2026-03-08T07:00Z", "2026-11-01T06:00Z"),
    "Asia/Kathmandu": ("2026-06-10T00:00Z", "2026-06-13T00:00Z"),
}
HORIZON = timedelta(days=3)


@st.composite
def moments(draw):
    """Windows in one zone, and a minute within a few hours of a clock change."""
    zone = draw(st.sampled_from(sorted(ZONES)))
    window = st.builds(
        lambda minute, hour, day, minutes: Window(f"{minute} {hour} * * {day}", minutes * 60, zone),
        *map(st.sampled_from, (MINUTES, HOURS, DAYS)),
        st.sampled_from([1, 10, 60, 61, 150, 1440, 1700]),
    )
    change = utc(draw(st.sampled_from(ZONES[zone])))
    return draw(st.lists(window, min_size=1, max_size=2)), change + MINUTE * draw(st.integers(-240, 240))


def numbers(field, names=()):
    """The values of a cron field; None means all."""
    if field == "*":
        return None
    bounds = [[names.index(n) if n in names else int(n) for n in part.split("-")] for part in field.split(",")]
    return {value for low, *high in bounds for value in range(low, (high or [low])[0] + 1)}


@functools.cache
def minutes_of(hour, zone):
    """The minutes of an hour, each with its local time: many examples share them."""
    return [(time, time.astimezone(zoneinfo.ZoneInfo(zone))) for time in (hour + n * MINUTE for n in range(60))]


def openings(window, first, last):
    """Every minute from first to last at which the window opens: the rules of Debian's cron, read off the clock."""
    minute, hour, _, _, day = window.cron.split()
    minutes, hours = numbers(minute), numbers(hour)
    days = numbers(day, ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])
    fixed = minutes is not None and hours is not None

    def named(clock):
        return (
            (minutes is None or clock.minute in minutes)
            and (hours is None or clock.hour in hours)
            and (days is None or clock.isoweekday() % 7 in days)
        )

    found = []
    begin = first.replace(minute=0)
    every = range(int((last - begin) / (60 * MINUTE)) + 1)
    clocks = (pair for n in every for pair in minutes_of(begin + n * 60 * MINUTE, window.time_zone))
    for (_, before), (time, clock) in pairwise(pair for pair in clocks if first <= pair[0] <= last):
        skipped = int((clock - before) / MINUTE) - 1  # within one zone, this is the difference of the local times
        comes_late = fixed and any(named(clock - n * MINUTE) for n in range(1, skipped + 1))
        if comes_late or (named(clock) and not (fixed and clock.fold)):
            found.append(time)
    return found


def minutes_open(windows, first, last):
    """Every minute up to last that is inside a window, counted from first."""
    covered = set()
    for window in windows:
        length, done = window.duration_seconds * timedelta(seconds=1), first
        for start in openings(window, first - length, last):
            begin, done = max(start, done), start + length
            covered.update(range(int((begin - first) / MINUTE), int((done - first) / MINUTE)))
    return covered


class TestAnyWindows:
    @examples(5)
    @given(moments())
    def test_agrees_with_a_scan_minute_by_minute(self, moment):
        """Open or shut, and the minute at which that changes."""
        windows, now = moment
        covered = minutes_open(windows, now, now + HORIZON)
        ahead = (n for n in range(int(HORIZON / MINUTE)) if (n in covered) != (0 in covered))
        changes = next((now + n * MINUTE for n in ahead), None)
        found = window_at(windows, now)
        assert isinstance(found, Open if 0 in covered else Shut)
        at = found.until if isinstance(found, Open) else found.opens_at
        if at is None:
            in_sight = timedelta(days=2) if len(windows) == 1 else timedelta(hours=1)  # several may open too often
            assert changes is None or changes > now + in_sight
        else:
            assert at == changes or (changes is None and at >= now + HORIZON)


class TestCheck:
    @pytest.mark.parametrize(
        "cron", ["0 1 * * *", "*/15 22-23,0-5 * * MON-FRI", "0 0 L * *", "0 0 * * SUN#1", "0 0 29 2 *", "0 0 29 2 */7"]
    )
    def test_takes_what_comes_some_day(self, cron):
        """Also an expression for 29 February, even if it must be a Sunday."""
        check(Window(cron, HOUR, BERLIN))

    @pytest.mark.parametrize(
        ("cron", "named"),
        [
            ("61 * * * *", "bad minute"),
            ("0 24 * * *", "bad hour"),
            ("0 0 32 * *", "bad day-of-month"),
            ("0 0 30 2 *", "bad day-of-month"),
            ("0 0 * 13 *", "bad month"),
            ("0 0 * * 8", "bad day-of-week"),
            ("0 0 ? * *", "bad day-of-month"),
            ("5-1 * * * *", "bad minute"),
            ("*/0 * * * *", "bad minute"),
            ("one * * * *", "bad minute"),
            ("", "0 fields instead of five"),
            ("@reboot", "1 fields instead of five"),
            ("0 1 * *", "4 fields instead of five"),
            ("0 0 1 * * *", "6 fields instead of five: minute hour"),
            ("* * */20 * 1L", "no day ever matches"),
            ("9" * 5000 + " * * * *", "integer"),
        ],
    )
    def test_names_what_is_wrong_with_the_cron(self, cron, named):
        """The field, if one is wrong; six fields would otherwise be read as seconds first."""
        with pytest.raises(ValueError, match=named) as raised:
            check(Window(cron, HOUR, BERLIN))
        assert repr(cron) in str(raised.value)

    @pytest.mark.parametrize(
        "zone",
        ["", "Mars/Olympus", "Europe", "europe/berlin", "/etc/localtime", "../x", "x\0y", "tzdata.zi", "a" * 5000],
    )
    def test_names_an_unknown_zone(self, zone):
        """For any error while its file is read: no file, a directory, a wrong format, a path outside."""
        with pytest.raises(ValueError, match="time zone") as raised:
            check(Window("0 1 * * *", HOUR, zone))
        assert repr(zone) in str(raised.value)

    @pytest.mark.parametrize("seconds", [-1, 0, 366 * 86400 + 1, 10**15])
    def test_names_a_duration_that_is_none(self, seconds):
        """Beyond a year a window is always open, and beyond the calendar no end can be computed."""
        with pytest.raises(ValueError, match=f"duration of {seconds} s"):
            check(Window("0 1 * * *", seconds, BERLIN))

    @pytest.mark.parametrize("bad", [Window("61 * * * *", HOUR, BERLIN), Window("0 1 * * *", HOUR, "Mars/Olympus")])
    def test_an_unchecked_window_is_refused_when_asked_too(self, bad):
        """With the same message, not the library's error."""
        with pytest.raises(ValueError, match=r"bad minute|time zone"):
            window_at([NIGHT, bad], utc("2026-06-10T12:00Z"))


def test_zones_come_with_the_package():
    """A slim image has no /usr/share/zoneinfo: the zones come from the tzdata package."""
    assert importlib.resources.files("tzdata").joinpath("zoneinfo", *BERLIN.split("/")).is_file()
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        check(NIGHT)
    finally:
        zoneinfo.reset_tzpath(to=before)


class TestAskedInEveryRound:
    """A rebalance asks twice a second."""

    @pytest.fixture
    def computed(self, monkeypatch):
        """The times at which the answer was computed."""
        found = []

        def counting(windows, now):
            found.append(now)
            return window_at(windows, now)

        monkeypatch.setattr("kafka_rebalance.execution.windows.window_at", counting)
        return found

    def test_computed_at_each_change_only(self, computed):
        """A day of rounds, every half hour: the night opens once and closes once."""
        clock, noon = WindowClock(), utc("2026-06-10T12:00Z")
        for minute in range(0, 24 * 60, 30):
            now = noon + minute * MINUTE
            assert clock.at([NIGHT], now) == window_at([NIGHT], now)
        assert computed == [noon, utc("2026-06-11T01:00+02:00"), utc("2026-06-11T06:00+02:00")]

    def test_without_a_next_change_once_an_hour(self, computed):
        """Windows that always overlap are the slow ones."""
        clock, noon, always = WindowClock(), utc("2026-06-10T12:00Z"), [Window("* * * * *", 120, BERLIN)]
        assert {clock.at(always, noon + minute * MINUTE) for minute in range(120)} == {Open(None)}
        assert computed == [noon, noon + timedelta(hours=1)]

    def test_other_windows_and_an_earlier_time_are_computed(self):
        """An edit acts at once, and so does a clock that is set back."""
        clock, noon = WindowClock(), utc("2026-06-10T12:00Z")
        assert isinstance(clock.at([NIGHT], noon), Shut)
        assert clock.at([Window("0 12 * * *", 5 * HOUR, "UTC")], noon) == Open(utc("2026-06-10T17:00Z"))
        assert isinstance(clock.at([NIGHT], utc("2026-06-10T02:00Z")), Open)
