"""Binds each Kafka cluster to its owner, on record before anything is done there, and checks that it is the same one.

The caller admits only one claim of a cluster id at a time. No server is read during a claim: it may hang, and the
cluster's owner must not wait for a server that only claims the id. If a claim needs an answer of its server, it is
abandoned, the server is read, and the claim is repeated.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.ledger_json import ledger_from_json
from kafka_rebalance.kafka.ports import Answers, ClusterInfo, KafkaReader
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.kube.store import LedgerStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.run import Run
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.cluster_identity import (
    SAMPLE_TOPICS,
    contradiction,
    renewed,
    servers_of,
)
from kafka_rebalance.reconcile.decide.cluster_ownership import Standing, may_have
from kafka_rebalance.reconcile.state.record import Stores

log = logging.getLogger(__name__)

_MANY_SERVERS = 100

T = TypeVar("T")

StandingOf = Callable[[Owner, str], Standing]
"""What the operator knows of an owner with respect to a cluster id."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is not ended in a cluster. ``throttled``: the ledger is not empty, or cannot be read."""

    open_runs: tuple[Run, ...]
    throttled: bool

    def __bool__(self) -> bool:
        return bool(self.open_runs) or self.throttled

    def __str__(self) -> str:
        names = ", ".join(f"{run.namespace}/{run.name}" for run in self.open_runs[:3])
        more = f" and {len(self.open_runs) - 3} more" if len(self.open_runs) > 3 else ""
        return f"runs are open ({names}{more})" if self.open_runs else "throttles or cordons are in place"


class _NotRead(Exception):
    """Topics of a server are needed that were not read; None: all."""

    def __init__(self, topics: Collection[str] | None) -> None:
        super().__init__(topics)
        self.topics = topics


class Claimed:
    """What a server has answered that claims a cluster id. ``servers``: the addresses that led there, host:port."""

    def __init__(self, info: ClusterInfo, reader: KafkaReader, servers: frozenset[str] = frozenset()) -> None:
        self.info = info
        self.brokers = frozenset(info.brokers)
        self.servers = servers
        self._reader = reader
        self._read: dict[frozenset[str] | None, Answers[str, str, str]] = {frozenset(): Answers()}

    def ids_of(self, topics: Collection[str] | None) -> Answers[str, str, str]:
        """The ids of these topics, or of all. Only inside of ``judged``."""
        key = None if topics is None else frozenset(topics)
        if key not in self._read:
            raise _NotRead(topics)
        return self._read[key]

    async def judged(self, judge: Callable[[], Awaitable[T]]) -> T:
        """The result of ``judge``, which is called again after each reading that it needed."""
        while True:
            try:
                return await judge()
            except _NotRead as missing:
                topics = missing.topics
            key = None if topics is None else frozenset(topics)
            self._read[key] = await self._reader.topic_ids(topics)


class ClusterOwners:
    """The bindings on record."""

    def __init__(self, kube: KubeObjects, stores: Stores) -> None:
        self._bindings = BindingStore(kube)
        self._stores = stores
        self._ledgers = LedgerStore(kube)

    async def claim(
        self,
        claimant: Standing,
        server: Claimed,
        standing_of: StandingOf,
        *,
        running: bool,
        evict: Callable[[], Awaitable[None]],
    ) -> Owner | None:
        """Bind the cluster to the claimant; returns its owner before, None: there was none.

        ``running``: an engine works there already. ``evict`` ends that of another owner.
        Refused("ClusterOwnedElsewhere" or "Conflicted") if it belongs to another owner, Refused("ClusterIdCollision")
        if this server is not the cluster in which there is work.
        """
        cluster_id, servers = server.info.cluster_id, server.servers
        work = await self.work_in(cluster_id)
        binding = await self._binding(cluster_id, work)
        if binding is not None:
            holder = standing_of(binding.owner, cluster_id)
            refusal = may_have(claimant, binding, holder, work=bool(work) or running)
            if refusal is not None:
                await self._keep(binding)
                raise refusal
        mine = Binding(cluster_id, claimant.owner, servers=servers)
        same_owner = binding is not None and binding.owner == claimant.owner
        # Without a topic on record, no work may begin after `work_in` has looked for it: evict the other engine first.
        looked_for = work.throttled or (work and binding is not None and binding.topics)
        if not (same_owner or looked_for):
            _renewed(mine, server)  # what this needs is read while the other engine still runs
            await evict()
            work = await self.work_in(cluster_id)
        # A resource of the same owner would be handed to the engine. One of another owner is evicted, whose server may
        # be any that claims the id.
        if binding is not None and (work or (running and same_owner)):
            try:
                throttled = work.throttled and not same_owner
                self._compare(binding, server, believed=same_owner, throttled=throttled)
                if throttled and not binding.topics:
                    raise self._unproven(binding)
            except Refused as differs:
                outranked = claimant.owner.connection and not binding.owner.connection
                raise _held(differs, binding.owner, work) if outranked else differs from None
            known = servers | binding.servers if same_owner else servers
            mine = replace(binding, owner=claimant.owner, servers=known if len(known) <= _MANY_SERVERS else servers)
            if binding.topics and not same_owner:
                mine = replace(mine, recognised=binding.recognised | {binding.owner})
        await self._bindings.save(_renewed(mine, server))
        return None if binding is None else binding.owner

    async def recognise(self, info: ClusterInfo, reader: KafkaReader, bootstrap_servers: str) -> None:
        """Refused("ClusterIdCollision") if this server is not the cluster on record of the owner with these servers."""
        server = Claimed(info, reader, servers_of(bootstrap_servers))
        binding = await self._bindings.load(info.cluster_id)

        async def judge() -> None:
            if binding is not None:
                self._compare(binding, server, believed=True)

        await server.judged(judge)

    async def has_recognised(self, owner: Owner, cluster_id: str) -> bool:
        """Whether what this former owner has begun is in the very cluster on record, whatever became of its topics."""
        binding = await self._bindings.load(cluster_id)
        return binding is not None and owner in binding.recognised

    async def remember(self, server: Claimed) -> None:
        """Renew by what the cluster is known, as brokers and topics come and go. It was recognised when connected."""
        binding = await self._bindings.load(server.info.cluster_id)
        if binding is not None:
            await self._keep(_renewed(binding, server))

    async def end_unless(self, cluster_id: str, named: Callable[[Owner], bool]) -> None:
        """End the binding if nothing names the cluster for its owner, and there is no work of ours."""
        binding = await self._bindings.load(cluster_id)
        if binding is not None and not named(binding.owner) and not await self.work_in(cluster_id):
            await self._bindings.delete(cluster_id)
            log.info("cluster %s: no longer bound to %s", cluster_id, binding.owner)

    async def bound(self) -> list[Binding]:
        """All bindings on record."""
        return await self._bindings.load_all()

    async def work_in(self, cluster_id: str) -> Work:
        """The open runs and throttles of ours in a cluster."""
        runs = [run for run in await self._stores.runs.list_all() if run.open and run.cluster_id == cluster_id]
        return Work(tuple(runs), await self._throttled(cluster_id))

    async def _throttled(self, cluster_id: str) -> bool:
        try:
            data = await self._ledgers.load(cluster_id)
            return data is not None and not ledger_from_json(data).empty
        except (KeyError, TypeError, ValueError, StoredStateCorrupt):
            return True  # what is in it is not known

    async def _binding(self, cluster_id: str, work: Work) -> Binding | None:
        """As on record; of an operator before there were records, whose run is open, or whose was the last one."""
        binding = await self._bindings.load(cluster_id)
        if binding is not None or not work:
            return binding
        last = [run for run in await self._stores.runs.list_all() if run.cluster_id == cluster_id][-1:]
        return next((Binding(cluster_id, Owner(run.namespace)) for run in (*work.open_runs, *last)), None)

    def _compare(self, binding: Binding, server: Claimed, *, believed: bool, throttled: bool = False) -> None:
        """``believed``: the server is the owner's, and thus known by an address on record.

        ``throttled``: another owner has throttles in place, and without the record it would not get the cluster either.
        """
        if believed and server.servers & binding.servers:
            return
        seen = server.ids_of(binding.topics)
        differs = contradiction(binding, server.brokers, seen)
        if differs and not contradiction(binding, server.brokers, binding.topics):
            seen.or_raise()  # only topics differ, and one that was not read may be there with its id
        if differs:
            record = self._bindings.where(binding.cluster_id)
            instead = f"{self._without_throttles(binding)}, and {record}" if throttled else f"delete {record}"
            raise Refused(
                Reason.CLUSTER_ID_COLLISION,
                f"this server answers with the id of Kafka cluster {binding.cluster_id}, in which the operator has "
                f"work, but is another cluster: {differs}. Correct bootstrapServers, or give one of the clusters "
                f"another id; if it is the same cluster after all, {instead}",
            )

    def _unproven(self, binding: Binding) -> Refused:
        """A run is compared again with the server before it is used. The throttle ledger names no ids."""
        return Refused(
            Reason.CLUSTER_ID_COLLISION,
            f"throttles of the operator are in place in Kafka cluster {binding.cluster_id}, and no topic by which this "
            "server can be recognised is on record: if it is the same cluster, wait for an hour until topics are on "
            f"record, or {self._without_throttles(binding)}",
        )

    def _without_throttles(self, binding: Binding) -> str:
        """How to make an end of throttles that another owner has in place."""
        return (
            f"delete the resources of {binding.owner} that lead to it and wait until the throttles are removed; where "
            f"nothing removes them, remove them by hand and delete {self._ledgers.where(binding.cluster_id)}"
        )

    async def _keep(self, binding: Binding) -> None:
        if await self._bindings.load(binding.cluster_id) != binding:
            await self._bindings.save(binding)


async def begun_here(stores: Stores, run: Run, reader: KafkaReader) -> bool:
    """Whether the run was begun in this cluster, or has nothing left to do in any.

    A server that claimed the cluster id before the cluster's owner came may have begun it. Then the topics that it
    moves are here, if at all, with other ids. Where some cannot be read, it is not known: raises why. A run whose
    topics are all gone, or that moves none, ends here: at most its cordons are left.
    """
    stored = await stores.plans.load(run.uid, run.plan_hash)
    if stored is None:
        return True  # nothing is sent without it
    moved = [(row.tp.topic, row.topic_id) for row in stored.plan.partitions]
    if not moved:
        # An earlier plan of the run may have moved something.
        origins = await stores.origins.load(run.uid, run.run_id) or {}
        moved = [(tp.topic, origin.topic_id) for tp, origin in origins.items()]
    ids = {topic: topic_id for topic, topic_id in moved if topic_id}
    there = await reader.topic_ids(ids) if ids else Answers()
    if ids.items() & there.items():
        return True
    there.or_raise()
    return not there and len(ids) == len({topic for topic, _ in moved})


def _held(differs: Refused, holder: Owner, work: Work) -> Refused:
    """What an administrator can do, whose KafkaConnection outranks the holder."""
    return Refused(
        differs.reason,
        f"{differs.message}. The id belongs to {holder} so far, and {work}: if theirs is the wrong server, delete the "
        f"KafkaRebalances and KafkaReassignmentThrottles of namespace {holder.namespace} that lead to it",
    )


def _renewed(binding: Binding, server: Claimed) -> Binding:
    """With brokers and topics as they are now. All topics are read only where many of those known are gone."""
    seen = server.ids_of(binding.topics)
    unread = {topic: binding.topics[topic] for topic in seen.errors}
    after = renewed(binding, server.brokers, unread | seen)
    if len(after.topics) < SAMPLE_TOPICS // 2:
        after = renewed(binding, server.brokers, unread | server.ids_of(None))
    return after
