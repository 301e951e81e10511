"""Pages that change while somebody looks at them: one at a time, not too often, and a bounded number."""

import asyncio
import threading
from dataclasses import replace

import pytest
from tests.unit.report.report_values import course, report

from kafka_rebalance.app import fresh_pages
from kafka_rebalance.app.fresh_pages import FreshPages
from kafka_rebalance.errors import Transient
from kafka_rebalance.report.packed_partitions import packed


class Clock:
    """Sleeping makes it later."""

    now = 100.0
    slept = 0.0

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.slept += seconds
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(fresh_pages, "monotonic", clock.monotonic)
    return clock


class Reports:
    """``made`` lists what was asked for; ``failures`` are raised by the next ones."""

    def __init__(self):
        self.made, self.failures = [], []
        self.report = report(course=course())

    async def make(self, which):
        self.made.append(which)
        if self.failures:
            raise self.failures.pop(0)
        return replace(self.report, title=f"report {which}", state=f"state {len(self.made)}")


@pytest.fixture
def reports():
    return Reports()


@pytest.fixture
async def pages(reports):
    pages = FreshPages(reports.make)
    yield pages
    await pages.close()


class TestFreshness:
    async def test_a_page_is_shared_for_some_seconds(self, pages, reports, clock):
        """This time is shorter than the reload interval, so each reload shows a new page."""
        first = await pages.page("a")
        assert await pages.page("a") == first
        assert b"report a" in first
        assert b'<meta http-equiv="refresh" content="5">' in first
        clock.now += fresh_pages.RELOAD_SECONDS
        assert b"state 2" in await pages.page("a")
        assert reports.made == ["a", "a"]

    async def test_each_has_its_own(self, pages, clock):
        assert b"report a" in await pages.page("a")
        assert b"report b" in await pages.page("b")

    async def test_a_failure_is_not_kept(self, pages, reports, clock):
        reports.failures = [Transient("ApiServerUnreachable", "no answer")]
        with pytest.raises(Transient):
            await pages.page("a")
        assert b"state 2" in await pages.page("a")


class TestBounds:
    async def test_many_who_ask_at_once(self, pages, reports):
        """One page is made for all of them."""
        found = await asyncio.gather(*(pages.page("a") for _ in range(50)))
        assert len(set(found)) == 1
        assert reports.made == ["a"]

    async def test_who_gives_up(self, pages, reports):
        """The page is made once, for the next caller, even if each caller is cancelled before it is ready."""
        go_on, real = asyncio.Event(), reports.make

        async def make(which):
            await go_on.wait()
            return await real(which)

        pages._make = make
        for _ in range(3):
            asked = asyncio.create_task(pages.page("a"))
            await asyncio.sleep(0)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        go_on.set()
        assert b"state 1" in await pages.page("a")
        assert reports.made == ["a"]

    async def test_the_number_that_is_made(self, pages, reports, monkeypatch):
        """Requests above the limit are refused, so the queue is bounded."""
        monkeypatch.setattr(fresh_pages, "_MOST_PAGES", 2)
        found = await asyncio.gather(*(pages.page(which) for which in "abc"), return_exceptions=True)
        assert [getattr(page, "reason", None) for page in found] == [None, None, "ReportBusy"]
        assert reports.made == ["a", "b"]

    async def test_the_end_does_not_wait(self, reports):
        async def make(_):
            await asyncio.Event().wait()

        pages = FreshPages(make)
        asked = asyncio.create_task(pages.page("a"))
        await asyncio.sleep(0)
        await pages.close()
        with pytest.raises(asyncio.CancelledError):
            await asked

    async def test_the_number_of_pages(self, pages, reports, clock, monkeypatch):
        """The page that was requested least recently is dropped."""
        monkeypatch.setattr(fresh_pages, "_MOST_PAGES", 2)
        for which in ("a", "b", "a", "c", "a"):
            await pages.page(which)
        assert reports.made == ["a", "b", "c"]
        await pages.page("b")
        assert reports.made == ["a", "b", "c", "b"]

    async def test_not_in_the_thread_of_the_loop(self, pages, monkeypatch):
        """Other requests do not wait for a page."""
        threads = []
        real = fresh_pages.html_page

        def drawn(*arguments):
            threads.append(threading.current_thread())
            return real(*arguments)

        monkeypatch.setattr(fresh_pages, "html_page", drawn)
        await pages.page("a")
        assert threads != [threading.main_thread()]

    async def test_rest_after_work(self, reports, clock, monkeypatch):
        """With many requests, the thread works a fifth of the time."""
        resting = FreshPages(reports.make, rest=4)
        real = fresh_pages.html_page

        def slow(*arguments):
            clock.now += 2
            return real(*arguments)

        monkeypatch.setattr(fresh_pages, "html_page", slow)
        monkeypatch.setattr(fresh_pages.asyncio, "sleep", clock.sleep)
        for which in range(5):
            await resting.page(which)
        assert clock.slept == 4 * 8
        await resting.close()

    async def test_rest_after_a_failure(self, reports, clock, monkeypatch):
        """Nothing is kept of it, so each request for a resource that is gone, or not valid, reads it again."""
        resting = FreshPages(reports.make, rest=4)

        async def slow(_):
            clock.now += 0.5
            raise Transient("ApiServerUnreachable", "no answer")

        monkeypatch.setattr(resting, "_make", slow)
        monkeypatch.setattr(fresh_pages.asyncio, "sleep", clock.sleep)
        for which in range(5):
            with pytest.raises(Transient):
                await resting.page(which)
        assert clock.slept == 4 * 2
        await resting.close()

    async def test_the_partitions_of_a_plan_are_packed_once(self, pages, reports, clock, monkeypatch):
        """Packing is most of the work of a large page, and the partitions of a plan never change."""
        packings = []

        def counted(rows, most):
            packings.append(len(rows))
            return packed(rows, most)

        monkeypatch.setattr(fresh_pages, "packed", counted)
        for _ in range(3):
            await pages.page("a")
            clock.now += fresh_pages.RELOAD_SECONDS
        assert packings == [len(reports.report.partitions)]
        reports.report = replace(reports.report, partitions=list(reports.report.partitions)[:1])
        assert b"1 of 1 partitions" in await pages.page("a")
        assert packings[1:] == [1]
