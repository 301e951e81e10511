"""Web pages of reports that change while users look at them. The work is bounded, however many requests there are.

Pages are made only on request, one at a time, in a separate thread. A page is served for some seconds before it is made
again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from kafka_rebalance.errors import Transient
from kafka_rebalance.reasons import Reason
from kafka_rebalance.report.packed_partitions import PackedPartitions, packed
from kafka_rebalance.report.pages import Pack, html_page
from kafka_rebalance.report.report_contents import PartitionRow, Report

RELOAD_SECONDS = 5
_FRESH_SECONDS = 4.0
"""Less than the time between two loads of a page: several windows share a page, and each sees every change."""
_MOST_PAGES = 8
"""The number of pages that are kept or are being made. Each has at most 1.5 MB."""

Which = TypeVar("Which")


@dataclass(slots=True)
class _Kept:
    """A page, when it was made, and the packed partitions of the plan that it shows."""

    page: bytes
    made_at: float
    pack: Pack


class FreshPages(Generic[Which]):
    """``make`` returns the report for one key. Its errors are passed on, and nothing is kept then.

    ``rest``: the pause after a page or a failure, as a multiple of the time that it took: it leaves time for other
    work. At most some seconds after a failure.
    """

    def __init__(self, make: Callable[[Which], Awaitable[Report]], *, rest: float = 0.0) -> None:
        self._make = make
        self._rest = rest
        self._kept: OrderedDict[Which, _Kept] = OrderedDict()
        self._making: dict[Which, asyncio.Task[bytes]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._not_before = float("-inf")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="report")

    async def page(self, which: Which) -> bytes:
        """The page as UTF-8, at most a few seconds old. Transient("ReportBusy"): too many others are being made.

        If the caller is cancelled, the page is still made for the next caller, so that a slow page is made only once.
        """
        kept = self._kept.get(which)
        if kept is not None and monotonic() - kept.made_at < _FRESH_SECONDS:
            self._kept.move_to_end(which)
            return kept.page
        making = self._making.get(which)
        if making is None:
            if len(self._making) >= _MOST_PAGES:
                raise Transient(Reason.REPORT_BUSY, "too many reports are being made", retry_after=RELOAD_SECONDS)
            making = self._making[which] = asyncio.create_task(self._made(which))
            making.add_done_callback(lambda _: self._making.pop(which))
        return await asyncio.shield(making)

    async def close(self) -> None:
        """Cancel the pages in progress. Does not wait for a page that the thread is rendering."""
        making = list(self._making.values())
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _made(self, which: Which) -> bytes:
        async with self._one_at_a_time:
            await asyncio.sleep(max(0.0, self._not_before - monotonic()))
            began = monotonic()
            try:
                report = await self._make(which)
                before = self._kept.pop(which, None)
                pack = before.pack if before is not None else _Packing().packed
                page = await asyncio.get_running_loop().run_in_executor(self._thread, _drawn, report, pack)
            except BaseException:
                # Shorter than the pause after a page: what took long may be an API server that does not answer.
                ended = monotonic()
                self._not_before = ended + min(self._rest * (ended - began), RELOAD_SECONDS)
                raise
            ended = monotonic()
            self._not_before = ended + self._rest * (ended - began)
            self._kept[which] = _Kept(page, ended, pack)
            if len(self._kept) > _MOST_PAGES:
                self._kept.popitem(last=False)
            return page


class _Packing:
    """Remembers the last packed rows: packing is most of the work, and the rows of a plan never change."""

    def __init__(self) -> None:
        self._rows: object = None
        self._found = PackedPartitions("", 0, 0)

    def packed(self, rows: Sequence[PartitionRow], most: int) -> PackedPartitions:
        """As `packed_partitions.packed`."""
        whole = self._found.kept == len(rows)
        if self._rows is not rows or len(self._found.data) > most or not whole:
            self._rows, self._found = rows, packed(rows, most)
        return self._found


def _drawn(report: Report, pack: Pack) -> bytes:
    return html_page(report, RELOAD_SECONDS, pack).encode()
