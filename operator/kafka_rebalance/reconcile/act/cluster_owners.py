"""Binds each Kafka cluster to its owner, on record before anything is done there, and checks that it is the same one.

The caller admits only one claim of a cluster id at a time. A claim is judged again if the owner has come to further
servers meanwhile (``recognise``). No server is read during a claim: if it needs an answer of its server, it is
abandoned, the server is read, and the claim is repeated (``claimed_server``).
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.kafka.ports import ClusterInfo, KafkaReader
from kafka_rebalance.kube.api_errors import StoredStateCorrupt
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.objects import KubeObjects
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.claim_refusals import ClaimRefusals, held
from kafka_rebalance.reconcile.act.claimed_server import Claimed
from kafka_rebalance.reconcile.act.cluster_ledgers import ClusterLedgers
from kafka_rebalance.reconcile.act.cluster_work import Unfinished, Work
from kafka_rebalance.reconcile.act.doubtful_runs import doubt_runs, doubt_runs_again
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.retention import abandoned
from kafka_rebalance.reconcile.decide.cluster_identity import (
    SAMPLE_TOPICS,
    advertised_by,
    confirmed,
    hashes_of,
    proved,
    reached_by,
    renewed,
    servers_of,
)
from kafka_rebalance.reconcile.decide.cluster_ownership import Standing, refusal_at_once, refusal_of_claim
from kafka_rebalance.reconcile.state.record import Stores

log = logging.getLogger(__name__)

MOST_CLUSTERS = 20
"""Of the inline connections of a namespace. Their servers may claim new ids, and leave work without end there."""
StandingOf = Callable[[Owner, str], Standing]
"""What the operator knows of an owner with respect to a cluster id."""


@dataclass(frozen=True, slots=True)
class _Holder:
    """The owner on record, when another claim is made.

    ``same``: it is the claimant. ``proved``: the work that it started is in the cluster of the claimant's server.
    ``confirmed``: an administrator has confirmed the claimant's bootstrap servers.
    """

    binding: Binding
    standing: Standing
    same: bool
    proved: bool
    confirmed: bool


class ClusterOwners:
    """The bindings on record. ``named_by``: the owner that the resource of a run names; None: it is not known.

    ``limited_in``: as for ``ClusterLedgers``.
    """

    def __init__(
        self,
        kube: KubeObjects,
        stores: Stores,
        resources: Resources,
        named_by: Callable[[str], Owner | None],
        limited_in: Callable[[str], bool],
        now: Callable[[], datetime],
    ) -> None:
        self._resources = resources
        self._now = now
        self._bindings = BindingStore(kube)
        self._stores = stores
        self._ledgers = ClusterLedgers(kube, limited_in)
        self._refusals = ClaimRefusals(self._bindings, self._ledgers, stores.runs)
        self._named_by = named_by

    async def claim(
        self,
        claimant: Standing,
        server: Claimed,
        standing_of: StandingOf,
        *,
        running: bool,
        evict: Callable[[], Awaitable[None]],
    ) -> Binding:
        """Bind the cluster to the claimant; returns what is on record from now on.

        ``running``: an engine works there already. ``evict`` ends the engine of another owner. Without proof that the
        former owner worked in the cluster of this server, the claim is refused if that owner has throttles there;
        otherwise its runs become ``unproved``. Refused("ClusterOwnedElsewhere" or "Conflicted") if it belongs
        to another owner, "ClusterIdCollision" if this server is not the cluster in which there is work,
        "InlineConnectionRefused" if the inline connections of the claimant have too many clusters.
        """
        cluster_id = server.info.cluster_id
        before = await self._bindings.load(cluster_id)
        if before is not None:
            refusal = refusal_at_once(claimant, before, standing_of(before.owner, cluster_id))
            if refusal is not None:
                raise refusal
        while True:
            work = await self.work_in(cluster_id)
            binding = await self._binding(cluster_id, work)
            holder = None if binding is None else _holder(binding, claimant, server, standing_of)
            if holder is not None:
                self._refuse_outranked(claimant, holder, server, work, running=running)
            # A resource of the same owner would be handed to the engine. One of another owner is evicted, whose server
            # may be any that claims the id.
            followed = holder if holder is not None and (work or (running and holder.same)) else None
            if followed is not None and not await self._is_same_cluster(claimant, followed, server, work):
                continue
            # What this needs is read while the other engine still runs.
            mine = _new_binding(claimant, server, holder, followed=followed is not None)
            most = None if claimant.owner.connection or (holder is not None and holder.same) else MOST_CLUSTERS
            await self._bindings.refuse_more(mine, most)
            if running and not (holder is not None and (holder.same or (work and holder.proved))):
                # Its last round may begin work, or cordon brokers.
                await evict()
                running = False
                continue
            if holder is None or not (holder.proved and (followed or server.servers <= holder.binding.servers)):
                await doubt_runs(self._stores.runs, cluster_id, claimant.owner)
            elif not holder.same:
                await doubt_runs_again(self._stores.runs, cluster_id)
            if await self._bindings.replaces(binding, mine, most=most):
                return mine

    def _refuse_outranked(
        self, claimant: Standing, holder: _Holder, server: Claimed, work: Work, *, running: bool
    ) -> None:
        """Refuse a claimant that the owner on record outranks."""
        binding, standing, kept = holder.binding, holder.standing, work.keeps(claimant.owner, self._named_by)
        sure, running = {"proved": holder.proved, "confirmed": holder.confirmed}, running and not work
        if (refusal := refusal_of_claim(claimant, binding, standing, work=kept, running=running, **sure)) is None:
            return
        if work and not holder.standing.named:
            raise self._refusals.left_behind(refusal, binding, work, server, claimant.owner)
        if claimant.owner.connection and not binding.owner.connection:
            confirm = self._refusals.how_to_confirm(binding, server)
            raise Refused(refusal.reason, f"{refusal.message}. If it is the same cluster, {confirm}")
        raise refusal

    async def _is_same_cluster(self, claimant: Standing, holder: _Holder, server: Claimed, work: Work) -> bool:
        """Refuse a server that is not the cluster in which the owner on record has work.

        False: open runs whose resource is gone were closed instead, so there may be no such work any more.
        """
        binding, is_held = holder.binding, holder.standing.named
        try:
            throttled = work.throttled and not holder.same
            instead = self._refusals.without_throttles(binding, held=is_held) if throttled else ""
            self._refusals.refuse_other_cluster(binding, server, believed=holder.same, otherwise=instead)
            if throttled and not holder.proved:
                raise self._refusals.unproven(binding, server, instead)
        except Refused as differs:
            if not claimant.owner.connection or binding.owner.connection:
                raise
            if await self._abandon_orphans(work):
                return False
            raise held(differs, binding.owner, work) if is_held else differs from None
        return True

    async def recognise(self, owner: Owner, info: ClusterInfo, reader: KafkaReader, bootstrap_servers: str) -> None:
        """Put on record that the owner reaches its cluster by these servers, before a client of theirs is used.

        Another owner has no proof without the servers where work may start. Nothing waits for a claim, which may wait
        for the round that needs the client. Refused("ClusterIdCollision") if this server is not the cluster on record,
        "ClusterOwnedElsewhere" if the cluster is not bound to this owner (any more).
        """
        server = Claimed(info, reader, servers_of(bootstrap_servers))
        await server.judged(partial(self._recognise, owner, server))

    async def _recognise(self, owner: Owner, server: Claimed) -> None:
        while True:
            binding = await self._bindings.load(server.info.cluster_id)
            if binding is None or binding.owner != owner:
                message = f"Kafka cluster {server.info.cluster_id} is not bound to {owner}: its server is not used"
                raise Refused(Reason.CLUSTER_OWNED_ELSEWHERE, message)
            self._refusals.refuse_other_cluster(binding, server, believed=True)
            after = reached_by(binding, server.servers)
            if after == binding or await self._bindings.replaces(binding, after):
                return

    async def has_recognised(self, owner: Owner, cluster_id: str) -> bool:
        """Whether the work that this former owner started is in the cluster on record, also without its topics."""
        binding = await self._bindings.load(cluster_id)
        return binding is not None and owner in binding.recognised

    async def remember(self, server: Claimed) -> None:
        """Renew by what the cluster is known, as brokers and topics come and go. It was recognised when connected."""
        while (binding := await self._bindings.load(server.info.cluster_id)) is not None:
            after = _renewed(binding, server)
            if after == binding or await self._bindings.replaces(binding, after):
                return

    async def end_unless(self, cluster_id: str, named: Callable[[Owner], bool]) -> bool:
        """End the binding if nothing names the cluster for its owner, and no work of ours is there.

        Open runs without a resource are closed first, because nothing else can end them. No engine runs there. Returns
        whether throttles or cordons of ours are in place. The ledger is deleted first: if the operator is killed in
        between, the binding is still there, and with it the next look. It stays while an undo may open a run again.
        """
        binding = await self._bindings.load(cluster_id)
        if binding is None or named(binding.owner):
            return await self._ledgers.throttled(cluster_id)  # without the list of all runs, for which others may wait
        work = await self.work_in(cluster_id)
        if work.open_runs and not work.throttled and not named(binding.owner):
            try:
                await self._abandon_orphans(work)
            except RebalanceError as error:
                log.warning("cluster %s: it is not known whose its open runs are: %s", cluster_id, error.message)
            work = await self.work_in(cluster_id)
        if not named(binding.owner) and not work:
            if not work.undoable:
                await self._ledgers.forget(cluster_id)
            await self._bindings.delete(cluster_id)
            log.info("cluster %s: no longer bound to %s", cluster_id, binding.owner)
        return work.throttled

    async def left_by(self, owner: Owner, cluster_id: str) -> Unfinished | None:
        """The throttles or cordons of ours in the owner's cluster; None: there are none, or another owner has it."""
        binding = await self._bindings.load(cluster_id)
        if binding is None or binding.owner != owner or not await self._ledgers.throttled(cluster_id):
            return None
        return self.unfinished(binding)

    def unfinished(self, binding: Binding) -> Unfinished:
        """That throttles or cordons of ours are in this cluster, and what can be done."""
        return Unfinished(binding, str(Work((), throttled=True)), self._refusals.without_us(binding))

    def without_us(self, binding: Binding) -> str:
        """The advice for a cluster that the operator cannot reach any more."""
        return self._refusals.without_us(binding)

    async def left_ledgers(self) -> list[str]:
        """Clusters with a throttle ledger, but no binding and no run that is open or may be undone: some, of many."""
        used = {run.cluster_id for run in await self._stores.runs.list_all() if run.open or run.undoable}
        return await self._ledgers.others({binding.cluster_id for binding in await self.bound()} | used)

    async def forget_ledger(self, cluster_id: str) -> None:
        """Delete an empty one of ``left_ledgers``, unless the cluster was bound since. No engine runs there."""
        if not await self._bindings.exists(cluster_id):
            await self._ledgers.forget(cluster_id)

    async def bound(self) -> list[Binding]:
        """All bindings on record."""
        return await self._bindings.load_all()

    async def work_in(self, cluster_id: str) -> Work:
        """The open runs and throttles of ours in a cluster."""
        runs = [run for run in await self._stores.runs.list_all() if run.cluster_id == cluster_id]
        unfinished = tuple(run for run in runs if run.open)
        return Work(unfinished, await self._ledgers.throttled(cluster_id), any(run.undoable for run in runs))

    async def _binding(self, cluster_id: str, work: Work) -> Binding | None:
        """The binding on record. A lost one is created again, for the owner that is stored with the throttle ledger."""
        binding = await self._bindings.load(cluster_id)
        if binding is not None or not work:
            return binding
        owner = await self._last_owner(cluster_id, work)
        if owner is None:
            return None
        binding = Binding(cluster_id, owner, more_servers=True)
        await self._bindings.save(binding)
        return binding

    async def _last_owner(self, cluster_id: str, work: Work) -> Owner | None:
        """The owner of the throttle ledger.

        If an earlier version has not stored it: the owner that the oldest open run names, or the last run if none is
        open.
        """
        try:
            if (owner := await self._ledgers.owner(cluster_id)) is not None:
                return owner
        except StoredStateCorrupt as error:
            log.warning("cluster %s: the owner of the throttle ledger cannot be read: %s", cluster_id, error.message)
        last = [run for run in await self._stores.runs.list_all() if run.cluster_id == cluster_id][-1:]
        return next((self._named_by(run.uid) or Owner(run.namespace) for run in (*work.open_runs, *last)), None)

    async def _abandon_orphans(self, work: Work) -> bool:
        """Close open runs whose resource is gone: nobody can delete that any more. Whether there were any."""
        found = False
        for run in work.open_runs:
            if await self._resources.exists(run.namespace, run.name, run.uid):
                continue
            if await self._stores.runs.load(run.uid) != run:
                continue  # an engine has closed it since it was listed
            await self._stores.runs.save(abandoned(run, self._now()))
            cordoned = ", ".join(map(str, run.cordoned)) or "none"
            log.warning(
                "%s/%s: run %s has lost its resource, and was closed. Brokers that stay cordoned: %s. Its plan and "
                "origins: %s",
                *(run.namespace, run.name, run.run_id, cordoned, self._stores.runs.how_to_see(run.uid)),
            )
            found = True
        return found


def _holder(binding: Binding, claimant: Standing, server: Claimed, standing_of: StandingOf) -> _Holder:
    standing = standing_of(binding.owner, server.info.cluster_id)
    same = binding.owner == claimant.owner
    advertised, as_created = advertised_by(server.info.brokers), bool(claimant.owner.connection) and claimant.as_created
    here = same or proved(binding, server.servers, advertised, as_created=as_created)
    return _Holder(binding, standing, same, here, confirmed(binding, server.servers))


def _new_binding(claimant: Standing, server: Claimed, holder: _Holder | None, *, followed: bool) -> Binding:
    """The binding of the claimant. ``followed``: the cluster is known to be that of the ``holder``, the owner before.

    As long as the owner stays the same, none of its servers is forgotten, also without work there: a closed run may
    have begun at any of them, and a new resource may take it over.
    """
    mine = Binding(server.info.cluster_id, claimant.owner, servers=server.servers)
    if holder is not None and holder.same:
        before = holder.binding
        base = before if followed else replace(mine, servers=before.servers, more_servers=before.more_servers)
        mine = reached_by(base, server.servers)
    elif holder is not None and followed:
        before = holder.binding
        recognised = before.recognised | {before.owner} if holder.proved else frozenset()
        mine = replace(mine, brokers=before.brokers, topics=before.topics, recognised=recognised)
    mine = replace(_renewed(mine, server), connection=server.connection, secrets=server.secrets)
    return replace(mine, confirmed="", uid=claimant.uid)


def _renewed(binding: Binding, server: Claimed) -> Binding:
    """With brokers and topics as they are now. All topics are read only where many of those known are gone."""
    binding = replace(binding, advertised=hashes_of(advertised_by(server.info.brokers)))
    seen = server.ids_of(binding.topics)
    unread = {topic: binding.topics[topic] for topic in seen.errors}
    after = renewed(binding, server.brokers, unread | seen)
    if len(after.topics) < SAMPLE_TOPICS // 2:
        after = renewed(binding, server.brokers, unread | server.ids_of(None))
    return after
