"""The operator's records: plans, origins and runs, in the operator's own namespace.

They are not in the users' namespaces, where garbage collection, namespace deletion or GitOps pruning could remove them
before a rollback has read them. Every operation may be interrupted at any point and repeated with the same result.
Assumes one writer, the leader.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from kafka_rebalance.kube import codec
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.blobs import KIND_LABEL, UID_LABEL, Blob, BlobStore, config_map, object_name
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.ordered_writes import OrderedWrites
from kafka_rebalance.kube.run_doubts import RunDoubts
from kafka_rebalance.kube.shared_reading import SharedReading
from kafka_rebalance.model.amended import amended
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import TopicPartition

_log = logging.getLogger(__name__)

PIECE_BYTES = 32 * 1024
"""The size of a piece of a record of origins. Adding origins rewrites at most this much: a few thousand partitions."""
_IN_PIECES = "inPieces"
_NAMESPACE = "namespace"
_REMEMBERED_LOGS = 32
_MANY_RUNS = 200
"""From this number on, runs are decoded off the event loop."""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan as it was saved; ``ref`` is the name of its index ConfigMap."""

    plan: Plan
    ref: str
    cluster_id: str
    created_at: datetime


class _ResourceStore:
    """Records of resources: blobs of one kind, by uid and a second key."""

    _KIND: ClassVar[str]

    def __init__(self, kube: KubeObjects) -> None:
        self._blobs = BlobStore(kube, self._KIND)

    async def clean(self) -> int:
        """Remove what a killed operator left half written."""
        return await self._blobs.clean()

    async def delete(self, uid: str, *, keep: Collection[str] = ()) -> None:
        """All of the resource, except those with these keys."""
        await self._blobs.delete_all(uid, keep=[self._blobs.name(uid, key) for key in keep])


class PlanStore(_ResourceStore):
    """The plans of each resource, by plan hash; its run names the current one."""

    _KIND = "plan"

    async def save(
        self, uid: str, plan_hash: str, cluster_id: str, plan: Plan, created_at: datetime, namespace: str = ""
    ) -> str:
        """Store, replacing the plan of the same hash; returns ``ref``. ``namespace``: of the resource."""
        name = self._blobs.name(uid, plan_hash)
        payload, actual = await asyncio.to_thread(lambda: (codec.encode_plan(plan), plan.moves_hash))
        times = {"createdAt": created_at.isoformat()}
        attributes = {"clusterId": cluster_id, "planHash": actual, _NAMESPACE: namespace, **times}
        await self._blobs.write(name, uid, payload, attributes)
        return name

    async def stored(self) -> dict[str, str]:
        """The uid of the resource of each plan, by ``ref``."""
        return await self._blobs.owners()

    async def namespace_of(self, ref: str) -> str:
        """The namespace of the resource of the plan; empty: not known, as of a plan of an earlier version."""
        return (await self._blobs.attributes(ref)).get(_NAMESPACE, "")

    async def load(self, uid: str, plan_hash: str) -> StoredPlan | None:
        """None if there is none, or it is damaged."""
        name = self._blobs.name(uid, plan_hash)
        try:
            blob = await self._blobs.read(name)
            if blob is None:
                return None
            plan, actual = await asyncio.to_thread(_decode_with_hash, blob.payload)
        except StoredStateCorrupt as error:
            _log.warning("stored plan of %s cannot be used: %s", uid, error.message)
            return None
        about = blob.attributes
        if actual != about["planHash"]:
            _log.warning("stored plan of %s cannot be used: its hash is %s, not %s", uid, actual, about["planHash"])
            return None
        return StoredPlan(plan, name, about["clusterId"], datetime.fromisoformat(about["createdAt"]))


@dataclass(frozen=True, slots=True)
class _OriginLog:
    """What is stored of a run's origins: sealed pieces, which are never written again, and the last piece.

    ``sealed`` are their shards, ``digest`` the hash of their bytes, ``tail`` the origins of the last piece. ``version``
    is the index's resource version, empty if there is none. ``swept``: nothing of an earlier writer is left behind.
    ``stale``: sealed pieces have origins that were given up and are not recorded any more.
    """

    recorded: Mapping[TopicPartition, Origin] = field(default_factory=dict)
    sealed: tuple[str, ...] = ()
    digest: Any = field(default_factory=hashlib.sha256)
    tail: tuple[Origin, ...] = ()
    last: tuple[str, ...] = ()
    version: str = ""
    swept: bool = False
    stale: bool = False


class OriginStore(_ResourceStore):
    """Each partition as it was before a run first changed it.

    The first record of a topic id and partition wins, unless it still names a first call: it is then not known whether
    this call was carried out. Log dirs are added to it, and the first one of each broker wins. Origins are recorded a
    few at a time, just before these partitions are altered. So only the last piece of the record is written again.
    Nothing is read: the store remembers the last piece that it wrote, and checks its version.
    """

    _KIND = "origins"

    def __init__(self, kube: KubeObjects) -> None:
        super().__init__(kube)
        self._logs: dict[str, _OriginLog] = {}
        self._written: dict[str, str] = {}
        """The uids of the records that this process has written, by name."""
        self._given_up: dict[tuple[str, str], Mapping[Origin, Origin | None]] = {}
        """What each record still contains although it was given up, and what counts instead; by uid and run id."""

    async def append(self, uid: str, run_id: str, origins: Iterable[Origin]) -> Mapping[TopicPartition, Origin]:
        """Record those that are not recorded yet, read them back and return all origins of the run.

        When this returns, the partitions may be altered. Conflict if there is another writer; the next call reads
        what that has recorded, which wins.
        """
        name = self._blobs.name(uid, run_id)
        log = self._logs.pop(name, None) or await self._read(uid, run_id)
        if not log.version and name in self._written:
            raise StoredStateCorrupt(
                f"ConfigMap {name} was deleted, so it is not known where partitions were before the run. Set "
                "deletionPolicy to Abandon and delete the resource to let go"
            )
        new, latest = list[Origin](), dict[TopicPartition, Origin]()
        for origin in origins:
            before = latest.get(origin.tp) or log.recorded.get(origin.tp)
            if (row := _to_record(origin, before)) is not None:
                latest[row.tp] = row
                new.append(row)
        if new or (log.version and name not in self._written):
            log = await self._write(uid, run_id, log, new)
        self._remember(name, log)
        return log.recorded

    def is_written(self, uid: str, run_id: str) -> bool:
        """Whether this process has written the record, as ``append`` does: no late request of another replaces it."""
        return self._blobs.name(uid, run_id) in self._written

    async def give_up(self, uid: str, run_id: str, gone: Mapping[Origin, Origin | None]) -> None:
        """Strike these origins off the record. Each has what counts instead; None: nothing does.

        They do not count from now on. If this fails, the next write is without them: call it again, ``gone`` empty.
        """
        name, before = self._blobs.name(uid, run_id), self._given_up.get((uid, run_id), {})
        if not gone and not before:
            return
        # Any row that a failed write was to strike off or to put in its place may be the stored one.
        self._given_up[uid, run_id] = {row: left and gone.get(left, left) for row, left in before.items()} | dict(gone)
        log = _struck_off(self._logs.pop(name), gone) if name in self._logs else await self._read(uid, run_id)
        if log.version:
            self._remember(name, await self._write(uid, run_id, log, ()))

    async def replace(self, uid: str, run_id: str, origins: Iterable[Origin]) -> Mapping[TopicPartition, Origin]:
        """Replace all origins of the run by these, in one write. Conflict: as for ``append``."""
        name = self._blobs.name(uid, run_id)
        self._logs.pop(name, None)
        blob = await self._blobs.read(name)
        empty = _OriginLog(version=blob.resource_version if blob else "")
        return (await self._write(uid, run_id, empty, list(origins))).recorded

    async def load(self, uid: str, run_id: str) -> Mapping[TopicPartition, Origin] | None:
        """None if there is no record. If a topic was re-created during the run, the origins of the newer id."""
        log = await self._read(uid, run_id)
        return log.recorded if log.version else None

    async def delete(self, uid: str, *, keep: Collection[str] = ()) -> None:
        """The origins of all runs of the resource, except these runs."""
        self._logs.clear()
        kept = {self._blobs.name(uid, run_id) for run_id in keep}
        self._written = {name: of for name, of in self._written.items() if of != uid or name in kept}
        self._given_up = {key: rows for key, rows in self._given_up.items() if key[0] != uid or key[1] in keep}
        await super().delete(uid, keep=keep)

    def _remember(self, name: str, log: _OriginLog) -> None:
        while len(self._logs) >= _REMEMBERED_LOGS:
            del self._logs[next(iter(self._logs))]
        self._logs[name] = log

    async def _read(self, uid: str, run_id: str) -> _OriginLog:
        blob = await self._blobs.read(self._blobs.name(uid, run_id))
        log = _OriginLog() if blob is None else await asyncio.to_thread(_log_of, blob)
        return _struck_off(log, self._given_up.get((uid, run_id), {}))

    async def _write(self, uid: str, run_id: str, log: _OriginLog, new: Sequence[Origin]) -> _OriginLog:
        if log.stale:
            # As a whole: a server that refuses its orders again and again must not fill etcd with what was given up.
            new = list({**log.recorded, **{origin.tp: origin for origin in new}}.values())
            log = _OriginLog(version=log.version)
        name = self._blobs.name(uid, run_id)
        pieces, tail, digest, content = await asyncio.to_thread(_pieces_with, log, new)
        attributes = {"runId": run_id, _IN_PIECES: "true"}
        shards, version = await self._blobs.extend(
            name, uid, log.sealed, pieces, content, attributes, expected=log.version
        )
        # The first write after a start removes the objects that a killed writer left behind.
        await self._blobs.drop(name, sorted({*log.last} - {*shards}) if log.swept else None, keep=shards)
        self._written[name] = uid
        self._given_up.pop((uid, run_id), None)
        recorded = amended(log.recorded, {origin.tp: origin for origin in new})
        return _OriginLog(recorded, shards[:-1], digest, tail, shards[-1:], version, swept=True)


class RunStore:
    """The current or last run of each resource."""

    _KIND = "run"
    _KEY = "run.json"

    def __init__(self, kube: KubeObjects) -> None:
        self._kube = kube
        self._writes = OrderedWrites(kube)
        self._all = SharedReading(self.list_unshared)
        self.handovers = 0
        """Changes when the write of a run that was handed over to another resource begins, and when it ends: a list
        that was asked for before may be without it."""
        self.doubts = RunDoubts()

    async def load(self, uid: str) -> Run | None:
        """None if the resource never had one."""
        found = await self._kube.get_config_map(object_name(self._KIND, uid))
        if found is None:
            return None
        self._writes.note(found)
        return self.doubts.applied_to(self._decoded(found))

    async def save(self, run: Run, check: Callable[[], None] = lambda: None) -> None:
        """Create or replace in one write. ``check`` raises if what another has written by now must not be replaced."""
        run = self.doubts.applied_to(run)  # what was read before must not prove it again
        name = object_name(self._KIND, run.uid)
        labels = {KIND_LABEL: self._KIND, UID_LABEL: run.uid}
        handed_over = run.successor is not None
        self.handovers += handed_over
        try:
            await self._writes.put(config_map(name, labels, data={self._KEY: codec.encode_run(run)}), check)
        finally:
            self.handovers += handed_over

    async def doubt(self, run: Run, *, later: bool = False) -> None:
        """Record that the run may have started elsewhere: ``unproved`` until ``go_on``, or for ``later`` owners.

        Conflict if an engine has written the run meanwhile. If it is just writing, its request is refused.
        """
        self.doubts.add(run, later=later)
        found = await self._kube.get_config_map(object_name(self._KIND, run.uid))
        if found is not None:
            now = self.doubts.applied_to(self._decoded(found))
            await self._writes.renew({**found, "data": {self._KEY: codec.encode_run(now)}})

    async def go_on(self, run: Run) -> None:
        """Save a run in doubt that is continued. With permission it is no longer ``unproved``."""
        self.doubts.go_on(run.uid)
        await self.save(run)

    def is_outdated(self, run: Run) -> bool:
        """Whether the run has been doubted since it was read."""
        return run != self.doubts.applied_to(run)

    async def delete(self, uid: str) -> None:
        """No error if there is none."""
        self.doubts.forget(uid)
        name = object_name(self._KIND, uid)
        self._writes.forget(name)
        await self._kube.delete_config_map(name)

    async def list_all(self, *, on_record: bool = False) -> list[Run]:
        """The runs of all resources, including deleted ones. A run that cannot be read is logged and left out.

        All who ask at the same time share a list. ``on_record``: without doubts that could not be written yet.
        """
        found = await self._all.latest()
        return list(found) if on_record else list(map(self.doubts.applied_to, found))

    async def list_unshared(self) -> list[Run]:
        """As they are on record, with a request of its own."""
        found = await self._kube.list_config_maps({KIND_LABEL: self._KIND})
        for body in found:
            self._writes.note(body)
        # A namespace may have thousands of resources with a run.
        return await asyncio.to_thread(self._readable, found) if len(found) > _MANY_RUNS else self._readable(found)

    def _readable(self, found: Iterable[Json]) -> list[Run]:
        runs = []
        for body in found:
            try:
                runs.append(self._decoded(body))
            except StoredStateCorrupt as error:
                _log.error("%s", error.message)
        return sorted(runs, key=lambda run: (run.opened_at, run.uid))

    def how_to_see(self, uid: str) -> str:
        """The command that shows all records of one resource, for messages."""
        return f"kubectl get configmaps -n {self._kube.namespace} -l {UID_LABEL}={uid}"

    def _decoded(self, found: Json) -> Run:
        try:
            return codec.decode_run(found["data"][self._KEY])
        except (KeyError, TypeError) as error:
            name = found["metadata"]["name"]
            raise StoredStateCorrupt(f"ConfigMap {self._kube.namespace}/{name} contains no run") from error


def _decode_with_hash(payload: bytes) -> tuple[Plan, str]:
    plan = codec.decode_plan(payload)
    return plan, plan.moves_hash


def _to_record(origin: Origin, before: Origin | None) -> Origin | None:
    """The origin to record if ``before`` is on record; None: nothing to record."""
    if before is None or before.topic_id != origin.topic_id:
        return origin
    first = replace(origin, log_dirs=before.log_dirs) if before.first_call else before
    row = first.with_log_dirs(origin.log_dirs or ())
    return row if row != before else None


def _struck_off(log: _OriginLog, gone: Mapping[Origin, Origin | None]) -> _OriginLog:
    """The log without these origins, as far as it has them. What counts instead is in the last piece."""
    found = {row.tp: instead for row, instead in gone.items() if log.recorded.get(row.tp) == row}
    if not found:
        return log
    kept = {tp: row for tp, row in found.items() if row is not None}
    recorded = {tp: origin for tp, origin in log.recorded.items() if tp not in found} | kept
    tail = (*(origin for origin in log.tail if origin.tp not in found), *kept.values())
    stale = log.stale or not {origin.tp for origin in log.tail}.issuperset(found.keys() - kept.keys())
    return replace(log, recorded=recorded, tail=tail, stale=stale)


def _log_of(blob: Blob) -> _OriginLog:
    origins = codec.decode_origins(blob.payload)
    recorded = {origin.tp: origin for origin in origins}
    if _IN_PIECES not in blob.attributes:
        # Of an earlier version: cut anywhere. It is written anew, as a whole.
        return _OriginLog(recorded, tail=tuple(recorded.values()), version=blob.resource_version)
    sealed = b"".join(blob.pieces[:-1])
    before = len(codec.decode_origins(sealed + codec.encode_origins((), first=False))) if sealed else 0
    digest, tail = hashlib.sha256(sealed), tuple(origins[before:])
    return _OriginLog(recorded, blob.shards[:-1], digest, tail, blob.shards[-1:], blob.resource_version)


def _pieces_with(log: _OriginLog, new: Sequence[Origin]) -> tuple[list[bytes], tuple[Origin, ...], Any, str]:
    """The pieces that follow the sealed ones, the origins of the last, the hash of all others, and that of all."""
    again = {(origin.tp, origin.topic_id) for origin in new}
    tail = (*(origin for origin in log.tail if (origin.tp, origin.topic_id) not in again), *new)
    pieces = [codec.encode_origins(tail, first=not log.sealed)]
    digest = log.digest.copy()
    if len(pieces[0]) > PIECE_BYTES:
        sealed = list(_sealed(tail, first=not log.sealed))
        for piece in sealed:
            digest.update(piece)
        tail, pieces = (), [*sealed, codec.encode_origins((), first=False)]
    whole = digest.copy()
    whole.update(pieces[-1])
    return pieces, tail, digest, whole.hexdigest()


def _sealed(origins: Sequence[Origin], *, first: bool) -> Iterator[bytes]:
    """In pieces of at most that many bytes: halved until they are."""
    piece = codec.encode_origins(origins, first=first, last=False)
    if len(piece) <= PIECE_BYTES or len(origins) == 1:
        yield piece
        return
    middle = len(origins) // 2
    yield from _sealed(origins[:middle], first=first)
    yield from _sealed(origins[middle:], first=False)
