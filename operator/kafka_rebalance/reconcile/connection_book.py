"""The connections that resources name, and what each of them is in use for. Nothing here connects.

All resources of a namespace with the same inline connection share one, and so do all that name the same
KafkaConnection. A connection belongs to an owner, and leads to an engine of that owner only.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.api.connection import Kafka, KafkaSource
from kafka_rebalance.api.connection_resource import Capacity
from kafka_rebalance.api.v1alpha1 import (
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    KafkaConnection,
    KafkaReassignmentThrottle,
    ObjectMeta,
)
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kafka.credential_rotation import Source
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reconcile.act.run_records import give_up_plan
from kafka_rebalance.reconcile.decide.cluster_ownership import LastUse, LedTo, Standing, owner_of
from kafka_rebalance.reconcile.engine import ClusterEngine
from kafka_rebalance.reconcile.report.connection_report import ConnectionState
from kafka_rebalance.reconcile.report.sampling_report import SamplingState
from kafka_rebalance.reconcile.state.rebalance import Rebalance

_FEW = 100
"""Resources of one connection that are all handed over after each event: less than a millisecond."""
_Name = tuple[str, str, str]
"""Kind, namespace and name of a resource."""


@dataclass(eq=False)
class NamedConnection:
    """One connection, the resources that name it and the engines that have them."""

    owner: Owner
    inline: Kafka | None = None
    """None for a KafkaConnection."""
    resource: KafkaConnection | None = None
    """None for an inline connection, and for a KafkaConnection that does not exist."""
    unread: ObjectMeta | None = None
    """Of a KafkaConnection that exists and has never been readable. It keeps its cluster."""
    rebalances: dict[str, Rebalance] = field(default_factory=dict)
    """The rebalances that name it, by uid."""
    throttles: dict[str, KafkaReassignmentThrottle] = field(default_factory=dict)
    """The throttle resources that name it, by uid."""
    placed: dict[str, ClusterEngine] = field(default_factory=dict)
    """By uid, the engine that has a resource.

    A rebalance that may no longer use the connection stays with the engine that ends its open run.
    """
    verified: Kafka | None = None
    """The connection settings that led to the engine when it was last connected."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the connection has to be looked at again; its task waits for it."""
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its throttle resources have been handed to their engine, or could not be."""
    may_move: bool = False
    """Whether its rebalances may be handed to the engine.

    They may once ``tried`` is set for every connection of its owner with throttle resources, or after a limited time.
    """
    cluster_id: str = ""
    """The id that its server claims; empty if it never answered."""
    led_to: LedTo = field(default_factory=LedTo)
    """Where a KafkaConnection has led."""
    engine: ClusterEngine | None = None
    """The engine that it leads to."""
    refusals: Mapping[str, RebalanceError] = field(default_factory=dict)
    """By uid, why resources may not use it."""
    busy: set[str] = field(default_factory=set)
    """The uids of the resources whose status is being written; nothing else is done for them meanwhile."""
    unfinished: str = ""
    """The id of the cluster in which its owner has left work; empty: none.

    The connection is kept for it even if no resource names it.
    """
    last: LastUse = field(default_factory=LastUse)
    """How that cluster was last connected to. A KafkaConnection that can be read has settings of its own."""
    sampling: SamplingState | None = None
    """The samples of the cluster; None: it is not sampled."""
    task: asyncio.Task[None] | None = None
    """Connects, and hands the resources to the engine."""
    _events: int = 0
    """How many resources were handed over alone since all of them were."""

    @property
    def about(self) -> ObjectMeta | None:
        """Of the KafkaConnection; None: there is none."""
        return self.unread if self.resource is None else self.resource.metadata

    @property
    def kafka(self) -> Kafka | None:
        """How to connect; None: a KafkaConnection that does not exist, or has never been readable."""
        return self.inline if self.resource is None else self.resource.spec

    @property
    def reach(self) -> Kafka | None:
        """The connection settings, even if they are used only to end work."""
        return self.kafka or (self.last.settings if self.unfinished else None)

    @property
    def on_record(self) -> str:
        """The connection settings as JSON, for a ``Binding``."""
        kafka = self.reach
        return "" if kafka is None else kafka.model_dump_json(by_alias=True, include=set(Kafka.model_fields))

    @property
    def source(self) -> Source:
        """Namespace (Secrets are read there), and what is named."""
        if self.inline is None:
            return self.owner.namespace, self.owner.connection
        return self.owner.namespace, self.inline.model_dump_json(by_alias=True)

    @property
    def name(self) -> str:
        """For the log."""
        return str(self.owner) if self.inline is None else self.inline.bootstrap_servers

    @property
    def named(self) -> bool:
        """Whether there is a resource to connect for."""
        return self.resource is not None or bool(self.rebalances or self.throttles)

    @property
    def needed(self) -> bool:
        """Whether there is a reason to keep it."""
        return self.named or bool(self.unfinished)

    @property
    def waited_for(self) -> bool:
        """Whether a resource has no engine yet. One that may use the connection again waits while it is ``busy``.

        For a KafkaConnection that does not exist nothing waits.
        """
        return self.kafka is not None and not self.placed.keys() >= self.rebalances.keys() | self.throttles.keys()

    def outdated(self, about: ObjectMeta, *, deleted: bool) -> bool:
        """Whether this event is of an earlier KafkaConnection with the same name: the watch reports it late."""
        if self.about is None or self.about.uid == about.uid:
            return False
        return deleted or about.created < self.about.created

    def has(self, uid: str) -> bool:
        """Whether this resource names it."""
        return uid in self.rebalances or uid in self.throttles

    def chosen_of(self, uids: Collection[str]) -> Collection[str]:
        """Those to hand over after an event of ``uids``; none: all.

        All of them, which forgets those that are gone unreported, as long as they are few, else only now and then:
        a user may create thousands, and edit one of them again and again.
        """
        known = len(self.rebalances) + len(self.throttles)
        self._events += len(uids)
        if uids and known > _FEW and self._events < known:
            return uids
        self._events = 0
        return *self.rebalances, *self.throttles

    def serves(self, uid: str) -> bool:
        """Whether the engine that it leads to has this resource, and not only to end it."""
        rebalance = self.rebalances.get(uid)
        placed = self.engine is not None and self.placed.get(uid) is self.engine
        return placed and (rebalance is None or rebalance.refusal is None)

    def metadata_of(self, uid: str) -> ObjectMeta:
        """Of a resource that names it."""
        return self.rebalances[uid].desired.metadata if uid in self.rebalances else self.throttles[uid].metadata

    @property
    def engines(self) -> set[ClusterEngine]:
        """The engines that have a resource of this connection."""
        return {engine for engine in (self.engine, *self.placed.values()) if engine is not None}

    def forgotten_if_gone(self, uid: str) -> bool:
        """Forget this rebalance if its engine has found that it does not exist any more; returns whether it has."""
        found_gone = uid in self.rebalances and uid in self.placed and uid not in self.placed[uid].rebalances
        if found_gone:
            self.forget(uid)
        return found_gone

    def place(self, rebalance: Rebalance, engine: ClusterEngine, refusal: RebalanceError | None = None) -> None:
        """Give the rebalance to this engine, and take it away from the one that had it. One that is ``busy`` waits.

        ``refusal``: why it may only end there. A rebalance whose deletion the watch has not reported is forgotten.
        """
        if self.forgotten_if_gone(rebalance.uid) or (rebalance.uid in self.busy and refusal is None):
            return
        new = self.placed.get(rebalance.uid) is not engine
        if new or (rebalance.refusal is None) is not (refusal is None):
            engine.wake()
        if new:
            self.leave(rebalance.uid)
        rebalance.refusal = refusal
        engine.rebalances[rebalance.uid] = rebalance
        self.placed[rebalance.uid] = engine

    def place_throttles(self, throttles: Mapping[str, KafkaReassignmentThrottle], engine: ClusterEngine) -> None:
        """Give the throttle resources to this engine."""
        throttles = {uid: throttle for uid, throttle in throttles.items() if uid not in self.busy}
        for uid in throttles:
            if self.placed.get(uid) is not engine:
                self.leave(uid)
                engine.wake()
            self.placed[uid] = engine
        if throttles:
            engine.see_throttles(throttles)

    def leave(self, uid: str) -> None:
        """No engine has this resource any more."""
        engine = self.placed.pop(uid, None)
        if engine is not None:
            if (rebalance := engine.rebalances.pop(uid, None)) is not None:
                give_up_plan(rebalance)
            engine.throttles.pop(uid, None)
            engine.wake()

    def forget(self, uid: str) -> None:
        """Remove this resource, which no longer names the connection."""
        self.leave(uid)
        self.rebalances.pop(uid, None)
        self.throttles.pop(uid, None)
        self.changed.set()

    def begin_nothing(self, why: RebalanceError | None) -> None:
        """Why its engine may begin no run: the settings do not lead to its cluster (yet). None: it may.

        A refused resource whose open run goes on begins no other one, for the reason of the refusal.
        """
        for uid, rebalance in self.rebalances.items():
            reason = self.refusals.get(uid, why)
            if self.serves(uid) and rebalance.unverified is not reason:
                rebalance.unverified = reason
                self.placed[uid].wake()

    def wake(self, uid: str) -> None:
        """Something changed for this resource. An engine that does not have it, as it may not be used, sleeps on."""
        self.changed.set()
        if uid in self.placed:
            self.placed[uid].wake()

    def state(self, problem: RebalanceError | None) -> ConnectionState:
        """For the status of the KafkaConnection."""
        engine = self.engine
        cluster_id = self.led_to.reported_of(self.about, None if engine is None else engine.cluster_id)
        if engine is None:
            return ConnectionState(cluster_id, None, problem, sampling=self.sampling)
        info, missing = engine.info, engine.missing_permissions
        problem = problem or engine.problem
        return ConnectionState(cluster_id, len(info.brokers), problem, info.version, missing, sampling=self.sampling)

    def read_again(self, uid: str) -> None:
        """Forget what was loaded for this rebalance: its records have changed, and no engine has it."""
        self.rebalances[uid] = Rebalance(self.rebalances[uid].desired)

    def begin_anew(self) -> None:
        """Forget the state in memory: another owner has the cluster now, with the work that was left there."""
        for uid in list(self.placed):
            self.leave(uid)
        for uid in self.rebalances:
            self.read_again(uid)
        self.engine, self.verified, self.may_move = None, None, False
        self.unfinished = ""
        self.changed.set()


class ConnectionBook:
    """All connections."""

    def __init__(self) -> None:
        self._connections: dict[Source, NamedConnection] = {}
        # Each event looks for its resource, and users may create any number of these.
        self._entered_in: dict[str, NamedConnection] = {}
        """By uid, the connection that a resource was entered in; it may have left it since."""
        self._uids: dict[_Name, set[str]] = {}
        """The uids of the resources that were entered under each name."""
        self.unread_throttles: dict[str, str] = {}
        """By uid, the cluster in which a throttle resource has limited something that cannot be read any more."""

    def __iter__(self) -> Iterator[NamedConnection]:
        return iter(list(self._connections.values()))

    def of(self, source: KafkaSource, namespace: str) -> NamedConnection:
        """What a resource of this namespace names; entered if it is new."""
        inline = source.named if isinstance(source.named, Kafka) else None
        return self._entered(NamedConnection(owner_of(source, namespace), inline))

    def of_owner(self, owner: Owner) -> NamedConnection:
        """That of a KafkaConnection, which may not exist."""
        return self._entered(NamedConnection(owner))

    def of_unfinished(self, binding: Binding) -> NamedConnection:
        """The connection to end the owner's work in this cluster. Raises ValueError if it is not on record."""
        last, owner = LastUse.of(binding), binding.owner
        connection = self._entered(NamedConnection(owner, None if owner.connection else last.settings))
        connection.unfinished, connection.last = binding.cluster_id, last
        return connection

    def enter_rebalance(self, connection: NamedConnection, rebalance: Rebalance) -> None:
        """The rebalance names this connection from now on."""
        connection.rebalances[rebalance.uid] = rebalance
        self._note(connection, REBALANCES, rebalance.desired.metadata)

    def enter_throttle(self, connection: NamedConnection, throttle: KafkaReassignmentThrottle) -> None:
        """The throttle resource names this connection from now on, or has changed."""
        connection.throttles[throttle.metadata.uid] = throttle
        self._note(connection, REASSIGNMENT_THROTTLES, throttle.metadata)

    def remove(self, plural: str, about: ObjectMeta) -> None:
        """This resource of a kind is gone."""
        known = self._entered_in.pop(about.uid, None)
        if known is not None and known.has(about.uid):
            known.forget(about.uid)
        name = (plural, about.namespace, about.name)
        left = self._uids.pop(name, set()) - {about.uid}
        if left:
            self._uids[name] = left

    def with_rebalance(self, uid: str) -> NamedConnection | None:
        """The connection of a rebalance that is known."""
        known = self._entered_in.get(uid)
        return known if known is not None and uid in known.rebalances else None

    def owner_named_by(self, uid: str) -> Owner | None:
        """The owner of the connection that a rebalance names; None if the rebalance is not known."""
        known = self.with_rebalance(uid)
        return None if known is None else known.owner

    def with_throttle(self, uid: str) -> NamedConnection | None:
        """The connection of a throttle resource that is known."""
        known = self._entered_in.get(uid)
        return known if known is not None and uid in known.throttles else None

    def outlived(self, metadata: ObjectMeta, plural: str) -> bool:
        """Whether a later resource of this kind and name is known; earlier ones are forgotten.

        Only the later of two can exist: the watch has missed a deletion, or reports it late.
        """
        others = self._uids.get((plural, metadata.namespace, metadata.name), set()) - {metadata.uid}
        kept = [(uid, known) for uid in others if (known := self._entered_in.get(uid)) is not None and known.has(uid)]
        found = [known.metadata_of(uid) for uid, known in kept]
        for other in found:
            if other.created < metadata.created:
                self.remove(plural, other)
        return any(other.created > metadata.created for other in found)

    def strike(self, connection: NamedConnection) -> None:
        """Nothing has the connection any more; the next resource that does starts anew."""
        if self._connections.get(connection.source) is connection and connection.unread is None:
            del self._connections[connection.source]

    def standing(self, owner: Owner, cluster_id: str) -> Standing:
        """Whether anything names the cluster for this owner, or may: its server has not answered yet."""
        found = [known for known in self if known.owner == owner]
        if owner.connection:
            if not found or (about := found[0].about) is None:
                return Standing(owner, named=False, edited=True)
            named = found[0].cluster_id in {"", cluster_id} or found[0].kafka != found[0].verified
            edited, moved = about.generation > 1, found[0].led_to.moved
            return Standing(owner, named, created=about.creation_timestamp, edited=edited, moved=moved, uid=about.uid)
        return Standing(owner, any(known.named and known.cluster_id in {"", cluster_id} for known in found))

    def capacity_of(self, owner: Owner) -> Capacity | None:
        """What the KafkaConnection that owns a cluster says of its brokers; None: nothing, or there is none."""
        found = (known.resource for known in self if known.owner == owner and known.resource is not None)
        return next((resource.spec.capacity for resource in found), None)

    def names_for(self, cluster_id: str, owner: Owner) -> bool:
        """Whether anything names the cluster for this owner, or may."""
        return self.standing(owner, cluster_id).named

    def limited_in(self, cluster_id: str) -> bool:
        """Whether there is a KafkaReassignmentThrottle that has limited something in this cluster, by its status."""
        throttles = (throttle for known in self for throttle in known.throttles.values())
        return any(throttle.metadata.held and throttle.status.cluster_id == cluster_id for throttle in throttles)

    def names(self, engine: ClusterEngine) -> bool:
        """Whether anything names the engine's cluster, resources that are not handed over yet included."""
        if engine.rebalances or engine.throttles:
            return True
        return any(c.engine is engine and (c.resource is not None or not c.may_move or c.waited_for) for c in self)

    def _note(self, connection: NamedConnection, plural: str, about: ObjectMeta) -> None:
        self._entered_in[about.uid] = connection
        self._uids.setdefault((plural, about.namespace, about.name), set()).add(about.uid)

    def _entered(self, connection: NamedConnection) -> NamedConnection:
        return self._connections.setdefault(connection.source, connection)
