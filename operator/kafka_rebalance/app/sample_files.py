"""Writes samples of clusters to the lake, off the event loop, a bounded number at a time.

A store that is full, gone or hangs costs the samples of that time. At most ``_AT_ONCE`` samples are in memory: the next
cluster is read only when the write of one of them has ended, even if nobody waits for that any more. A cluster that
answers too late to be read in time costs only its own sample. All namespaces share the lake, so each may write only a
share of it a day.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING

from kafka_rebalance.app.sample_turns import SampleTurns
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.ports import KafkaReader
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.connection_samplers import ClusterSampler
from kafka_rebalance.reconcile.report.sampling_report import StoredSample

if TYPE_CHECKING:
    from kafka_rebalance.pipeline.sampler import Sampler
    from kafka_rebalance.pipeline.schema import SampleBatch

_AT_ONCE = 2
_TURN_SECONDS = 120.0
_READ_SECONDS = 100.0
"""Less than others wait for a turn."""
_WRITE_SECONDS = 60.0
_CLOSE_SECONDS = 5.0
_MOST_NAMED = 5
_WHAT = "samples"


class SampleFiles:
    """``place``: the lake, a directory or the URI of one. ``before_write`` raises if this operator does not lead."""

    def __init__(self, place: str, before_write: Callable[[], None], now: Callable[[], datetime]) -> None:
        self._place = place
        self._before_write = before_write
        self._now = now
        self._claims = threading.Lock()
        self._used_up: dict[str, tuple[date, str]] = {}
        """By namespace, why no more of its samples are stored on that day."""
        self._turns = SampleTurns(_AT_ONCE)
        # Threads of its own: a store that hangs must not use up those of the event loop.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "samples")
        self._writing: set[asyncio.Future[int]] = set()

    def sampler(
        self, kafka: KafkaReader, wanted: Callable[[], bool], *, namespace: str, consumer_groups: bool
    ) -> ClusterSampler:
        """A run of samples of this cluster, whose KafkaConnection is in this namespace."""
        return _FiledSampler(self, kafka, wanted, namespace=namespace, consumer_groups=consumer_groups)

    async def taken(self, sampler: "Sampler", wanted: Callable[[], bool], namespace: str) -> StoredSample | None:
        """Take a sample and store it; None if it is not wanted any more.

        Permanent (DailyLimit) if the namespace has written its share of the day; then no cluster is read.
        """
        day, why = self._used_up.get(namespace, (date.min, ""))
        if day == self._today():
            raise Permanent(Reason.DAILY_LIMIT, why)
        await self._turn(namespace)
        writing: asyncio.Future[int] | None = None
        try:
            batch = await _read(sampler)
            if not wanted():
                return None
            writing = asyncio.get_running_loop().run_in_executor(self._threads, self._write, batch, namespace)
            self._writing.add(writing)
            writing.add_done_callback(partial(self._written, namespace))
        finally:
            if writing is None:
                self._turns.release(namespace)
        await asyncio.wait({writing}, timeout=_WRITE_SECONDS)
        if not writing.done():
            raise self._unusable(f"did not take the sample within {_WRITE_SECONDS:.0f} s")
        return StoredSample(batch.sampled_at, writing.result(), _missing(batch))

    async def close(self) -> None:
        """Give what is being written a few seconds to end."""
        if self._writing:
            await asyncio.wait(list(self._writing), timeout=_CLOSE_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, namespace: str) -> None:
        try:
            async with asyncio.timeout(_TURN_SECONDS):
                await self._turns.take(namespace)
        except TimeoutError:
            raise self._unusable(
                f"is busy: {_AT_ONCE} other samples were not read and stored within {_TURN_SECONDS:.0f} s"
            ) from None

    def _written(self, namespace: str, writing: "asyncio.Future[int]") -> None:
        """The next sample may be taken, even if nobody waits for this one any more."""
        self._writing.discard(writing)
        self._turns.release(namespace)
        if not writing.cancelled():
            writing.exception()

    def _write(self, batch: "SampleBatch", namespace: str) -> int:
        from kafka_rebalance.pipeline.sample_manifests import write_batch
        from kafka_rebalance.storage.locations import store_failed, without_credentials

        self._before_write()
        try:
            return write_batch(self._place, batch, partial(self._claim, namespace)).rows
        except OSError as error:
            raise store_failed(f"the sample was not stored in {without_credentials(self._place)}", error) from error

    def _claim(self, namespace: str, count: int) -> None:
        """Count the bytes of a sample. Permanent (DailyLimit) if they are more than the namespace has left that day."""
        from kafka_rebalance.storage.daily_bytes import claim_bytes, daily_share
        from kafka_rebalance.storage.locations import open_location

        location = open_location(self._place)
        today, most = self._today(), daily_share(location)
        with self._claims:
            claimed = claim_bytes(location, _WHAT, namespace, today, count, most)
        if not claimed:
            why = (
                f"the samples of namespace {namespace} have reached the limit of {most / 2**20:.0f} MiB a day: set a "
                "longer spec.sampling.interval, or sample fewer clusters. Sampling continues after midnight UTC"
            )
            self._used_up[namespace] = today, why
            raise Permanent(Reason.DAILY_LIMIT, why)

    def _today(self) -> date:
        return self._now().astimezone(UTC).date()

    def _unusable(self, why: str) -> Transient:
        from kafka_rebalance.storage.locations import without_credentials

        return Transient(Reason.LAKE_UNUSABLE, f"the lake {without_credentials(self._place)} {why}")


class _FiledSampler:
    def __init__(
        self,
        files: SampleFiles,
        kafka: KafkaReader,
        wanted: Callable[[], bool],
        *,
        namespace: str,
        consumer_groups: bool,
    ) -> None:
        self._files = files
        self._namespace = namespace
        self._kafka = kafka
        self._wanted = wanted
        self._consumer_groups = consumer_groups
        self._sampler: Sampler | None = None

    async def sample(self) -> StoredSample | None:
        """The next sample of the run."""
        if self._sampler is None:
            # The first one imports pyarrow.
            self._sampler = await asyncio.to_thread(_begin, self._kafka, consumer_groups=self._consumer_groups)
        return await self._files.taken(self._sampler, self._wanted, self._namespace)


async def _read(sampler: "Sampler") -> "SampleBatch":
    """The next sample. Its brokers may answer as late as they want, and hold the turns of others."""
    try:
        async with asyncio.timeout(_READ_SECONDS):
            return await sampler.sample()
    except TimeoutError:
        message = f"the cluster was not read within {_READ_SECONDS:.0f} s: its brokers answer too late for a sample"
        raise Transient(Reason.KAFKA_UNREACHABLE, message) from None


def _begin(kafka: KafkaReader, *, consumer_groups: bool) -> "Sampler":
    from kafka_rebalance.pipeline.sampler import Sampler

    return Sampler(kafka, consumer_groups=consumer_groups)


def _missing(batch: "SampleBatch") -> str:
    """What the sample lacks, for the status."""
    found = []
    if batch.missing_brokers:
        named = ", ".join(map(str, batch.missing_brokers[:_MOST_NAMED]))
        more = len(batch.missing_brokers) - _MOST_NAMED
        found.append(f"no answer from brokers {named}" + (f" and {more} more" if more > 0 else ""))
    if batch.commits_missing:
        found.append(
            f"bytes out are not measured, because consumer groups cannot be read ({batch.commits_missing}): permit "
            "Describe on all groups, or set consumerGroups: false"
        )
    return "; ".join(found)
