"""Reads the load model of a cluster, off the event loop. It is read again when its file has changed.

Models of a million partitions are kept, whatever the number of clusters: those that were asked for last.
"""

import asyncio
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.load_artifact import check_usable
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from kafka_rebalance.storage.stored_models import StoredModel

MAX_AGE = timedelta(hours=24)
_READ_SECONDS = 60.0
_READERS = 2
_MOST_PARTITIONS = 1_000_000
"""Of all models in memory, about 85 MiB; a single model may have more."""
_SMALLEST = 1_000
"""A model of fewer partitions counts as this many: it also takes some memory."""
CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]+")


class LoadModelFiles:
    """``<place>/<cluster id>/load-model.parquet``, as ``kafka-rebalance pipeline load-model`` writes it.

    ``place`` is a directory or the URI of one in an object store; None: there are no models.
    """

    def __init__(self, place: str | None, now: Callable[[], datetime]) -> None:
        self._place = place
        self._now = now
        self._known = _RecentModels()
        # Without those that nobody waits for: servers may claim any number of ids.
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Its own threads: a store that hangs must not use up those of the event loop.
        self._threads = ThreadPoolExecutor(_READERS, "load-model")

    async def __call__(self, cluster_id: str) -> LoadModel | None:
        """The model of a cluster; None if there is none.

        Refused says what is wrong with one that may not be used: its age, its cluster, its content. Transient
        (LakeUnusable) if it cannot be read.
        """
        if self._place is None:
            return None
        if not CLUSTER_ID.fullmatch(cluster_id):  # a server says it, and it becomes part of a path
            raise Refused(
                Reason.LOAD_MODEL_INVALID,
                f"no load model is read for cluster {cluster_id!r}: an id has only letters, digits, _ and -",
            )
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_READ_SECONDS), self._reading.setdefault(cluster_id, asyncio.Lock()):
                model = await loop.run_in_executor(self._threads, self._read, self._place, cluster_id)
        except TimeoutError as late:
            message = f"the load model was not read within {_READ_SECONDS:.0f} s: its store does not answer"
            raise Transient(Reason.LAKE_UNUSABLE, message, retry_after=60.0) from late
        if model is not None:
            check_usable(model, cluster_id, self._now(), MAX_AGE)
        return model

    def _read(self, place: str, cluster_id: str) -> LoadModel | None:
        # Imported where it is used: an operator without load models does not pay for pyarrow.
        from kafka_rebalance.storage.locations import open_location
        from kafka_rebalance.storage.stored_models import find_model, read_model

        location = open_location(place)
        stored = find_model(location, cluster_id)
        if stored is None:
            self._known.forget(cluster_id)
            return None
        known = self._known.get(cluster_id, stored)
        if known is not None:
            return known
        self._known.forget(cluster_id)  # not both in memory
        model = read_model(location, stored)
        self._known.keep(cluster_id, stored, model)
        return model


class _RecentModels:
    """The models that were asked for last, by cluster id. For any thread."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, tuple[StoredModel, LoadModel]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._models)

    def get(self, cluster_id: str, stored: "StoredModel") -> LoadModel | None:
        """None if this version of the file is not in memory."""
        with self._lock:
            kept = self._models.get(cluster_id)
            if kept is None or kept[0] != stored:
                return None
            self._models.move_to_end(cluster_id)
            return kept[1]

    def forget(self, cluster_id: str) -> None:
        with self._lock:
            self._models.pop(cluster_id, None)

    def keep(self, cluster_id: str, stored: "StoredModel", model: LoadModel) -> None:
        """Those that were not asked for the longest make room for it."""
        with self._lock:
            self._models[cluster_id] = stored, model
            self._models.move_to_end(cluster_id)
            partitions = sum(_weight(kept) for _, kept in self._models.values())
            while partitions > _MOST_PARTITIONS and len(self._models) > 1:
                _, (_, oldest) = self._models.popitem(last=False)
                partitions -= _weight(oldest)


def _weight(model: LoadModel) -> int:
    return max(_SMALLEST, len(model.partitions))
