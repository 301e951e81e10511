"""Writes the records of ended runs to the lake, off the event loop: nothing waits for it or fails by it."""

import asyncio
import logging
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC

from kafka_rebalance.app.load_model_files import CLUSTER_ID
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.duration_model import DurationModel, parse_durations
from kafka_rebalance.model.run_record import RunRecord

log = logging.getLogger(__name__)

_MOST_WAITING_STEPS = 500_000
"""The weight of the steps of runs that are not written yet, about 170 MiB. One run may have as much. A store that hangs
costs newer runs, first of the namespace with most that waits, and not memory without end."""
_LEAST_WEIGHT = 5_000
"""Any run counts as one of this weight."""
_MOST_BYTES_A_DAY = 50 << 20
"""Of one namespace, about 2,000,000 steps: with servers of its own it can end any number of runs, and all share the
lake. Names and lists that servers claim can take 600 bytes of a step."""
_FILE_BYTES = 12 << 10
"""Any file counts as one of this size."""
_WHAT = "steps"
_CLOSE_SECONDS = 5.0
_READ_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A run that is not written yet. ``held``: its record, until it is being written."""

    namespace: str
    run_id: str
    weight: int
    held: list[RunRecord]


class RunHistoryFiles:
    """``place`` is the lake, a directory or the URI of one; None: no history is kept.

    ``models``: the directory or URI with the models of the pipeline, ``<cluster id>/durations.json``; None: there are
    none.
    """

    def __init__(self, place: str | None, models: str | None = None) -> None:
        self._place = place
        self._models = models
        self._waiting: dict[Future[None], _Waiting] = {}
        """What is not written yet, oldest first."""
        # A thread of its own: a store that hangs must not use up those of the event loop.
        self._thread = ThreadPoolExecutor(1, "run-history")
        self._reader = ThreadPoolExecutor(1, "durations")

    def keep(self, record: RunRecord) -> None:
        """Store a record some time soon. Never raises, never waits."""
        if self._place is None:
            return
        run = _Waiting(record.namespace, record.run_id, max(record.weight, len(record.steps), _LEAST_WEIGHT), [record])
        if not self._make_room(run):
            _not_kept(run, len(self._waiting))
            return
        place = self._place
        writing = self._thread.submit(lambda: self._write(place, run.held.pop()))
        self._waiting[writing] = run
        writing.add_done_callback(lambda written: self._waiting.pop(written, None))

    def _make_room(self, run: _Waiting) -> bool:
        """Whether the run may wait. What namespaces with more than its own have is dropped for it."""
        while True:
            waiting = list(self._waiting.items())
            by_namespace: Counter[str] = Counter()
            for _, other in waiting:
                by_namespace[other.namespace] += other.weight
            if not waiting or by_namespace.total() + run.weight <= _MOST_WAITING_STEPS:
                return True
            greediest, most = by_namespace.most_common(1)[0]
            if by_namespace[run.namespace] + run.weight > most:
                return False
            newest_first = [(writing, other) for writing, other in reversed(waiting) if other.namespace == greediest]
            dropped = next((other for writing, other in newest_first if writing.cancel()), None)
            if dropped is None:  # its only run is being written
                return False
            dropped.held.clear()  # the queue of the thread keeps what was cancelled
            _not_kept(dropped, len(self._waiting))

    async def durations(self, cluster_id: str) -> DurationModel | None:
        """What `pipeline history` has learnt; None if that is not known or cannot be read. Never raises."""
        if self._models is None or not CLUSTER_ID.fullmatch(cluster_id):  # a server says it: it is part of a path
            return None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_READ_SECONDS):
                return await loop.run_in_executor(self._reader, _read, self._models, cluster_id)
        except TimeoutError:
            log.warning("the durations of cluster %s are not known: their store does not answer", cluster_id)
        except RebalanceError as error:
            log.warning("the durations of cluster %s are not known: %s", cluster_id, error.message)
        except Exception:
            log.exception("the durations of cluster %s are not known", cluster_id)
        return None

    async def close(self) -> None:
        """Give what is being written a few seconds to end."""
        waiting = [asyncio.wrap_future(writing) for writing in list(self._waiting)]
        if waiting:
            await asyncio.wait(waiting, timeout=_CLOSE_SECONDS)
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._reader.shutdown(wait=False, cancel_futures=True)

    def _write(self, place: str, record: RunRecord) -> None:
        # Imported where it is used: an operator without a history does not pay for pyarrow.
        from kafka_rebalance.storage.daily_bytes import claim_bytes, written_bytes
        from kafka_rebalance.storage.locations import open_location, without_credentials
        from kafka_rebalance.storage.run_history import packed_run, store_run

        name = f"{record.namespace}/{record.name}"
        namespace, day = record.namespace, record.ended_at.astimezone(UTC).date()
        try:
            location = open_location(place)
            room = _MOST_BYTES_A_DAY - written_bytes(location, _WHAT, namespace, day)
            packed = packed_run(record) if room >= _FILE_BYTES else b""
            count = max(len(packed), _FILE_BYTES)
            if not claim_bytes(location, _WHAT, namespace, day, count, _MOST_BYTES_A_DAY):
                log.warning(
                    "run %s is not in the history: namespace %s may write %d MiB a day",
                    *(record.run_id, namespace, _MOST_BYTES_A_DAY >> 20),
                )
                return
            path = store_run(location, record, packed)
            log.info("%s: %d steps of its run are in %s", name, len(record.steps), path)
        except RebalanceError as error:
            log.warning("%s: its run is not in the history: %s", name, error.message)
        except OSError as error:
            place = without_credentials(place)
            log.warning("%s: its run is not in the history: %s was not written (%s)", name, place, type(error).__name__)
        except Exception:
            log.exception("%s: its run is not in the history", name)


def _not_kept(run: _Waiting, waiting: int) -> None:
    log.warning("run %s is not in the history: %d others wait for the store", run.run_id, waiting)


def _read(models: str, cluster_id: str) -> DurationModel | None:
    from kafka_rebalance.storage.locations import open_location, read_whole

    data = read_whole(open_location(models), f"{cluster_id}/durations.json")
    return parse_durations(data) if data is not None else None
