"""An operator's process: the whole product from the Lease to the records, which can be killed, paused or cut off.

Only its clients are simulated. Each request runs in a task of its own, and goes on if its sender is killed.
"""

import asyncio
import contextlib
import contextvars
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from functools import partial

from structlog.contextvars import get_contextvars

from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kube.api_errors import from_response
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.lease import LEASE_NAME, LeaseHolder
from kafka_rebalance.reconcile.supervisor import Supervisor

CURRENT = contextvars.ContextVar("process", default=None)
_READS_OF_KUBE = ("get", "list", "read", "namespace_labels", "terminating")
_RECORDS = ("create_config_map", "replace_config_map")
_WRITES_OF_RESOURCES = ("patch", "patch_status", "patch_finalizers", "delete_resource")
_LONG_SECONDS = 45.0
"""Longer than another operator waits for the Lease."""


def at_once(coroutine):
    """The result of a fake's method; these methods never wait."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a fake waits")


def task_factory(loop, coroutine, **options):
    """Tasks belong to the process in which they are created."""
    task = asyncio.Task(coroutine, loop=loop, **options)
    context = options.get("context")
    process = CURRENT.get() if context is None else context.get(CURRENT)
    if process is not None:
        process.tasks[task] = None
        task.add_done_callback(lambda done: process.tasks.pop(done, None))
    return task


class OperatorProcess:
    """``kill_after``: the number of the request at which it is killed, before that is sent or while it is under way."""

    def __init__(self, world, identity):
        self.world, self.identity = world, identity
        self.tasks = {}
        self.alive, self.kill_after, self.requests = True, None, 0
        self.pause_after_record = False
        self.cut_off = set()
        """``kafka``, ``kube``: which servers it cannot reach."""
        self.running = asyncio.Event()
        self.running.set()
        self._unseen = []
        self._seen_until = 0.0
        self._blind_until = 0.0
        self.watching = False
        self.supervisor = None
        self.read = {}
        """Each partition as Kafka last described it to this process, and when it did."""
        self._read_began = {}
        self.log_dirs_read = defaultdict(lambda: deque(maxlen=3))
        """By broker, what it has last said of its log dirs: when, and what."""
        self.throttles_read = defaultdict(list)
        """By uid of a rebalance: when a spec was read, and whether it asks for no throttle."""
        self.lease = LeaseHolder(_KubeOf(self, None), LEASE_NAME, identity, world.clock)
        self.fence = Fence(self.lease.is_leader)
        self.context = contextvars.copy_context()
        self.context.run(CURRENT.set, self)
        self.context.run(lambda: world.loop.create_task(self._main()).add_done_callback(self._ended))

    def __repr__(self):
        return self.identity

    def _ended(self, main):
        """An error ends the process, as any other end of it."""
        if not main.cancelled() and main.exception() is not None:
            self.world.note(f"{self} ends: {main.exception()!r}")
        self.kill()

    async def _main(self):
        """As `app.process`, without probes and signals."""
        await self.lease.acquire()
        keeping = asyncio.create_task(self.lease.keep())
        kube = _KubeOf(self, self.fence)
        self.supervisor = Supervisor(kube, partial(KafkaOf, self), _no_load_models, self.world.clock)
        await self.supervisor.start()
        while True:
            try:
                await self.supervisor.know(())
                break
            except RebalanceError:
                await asyncio.sleep(2)
        self.watching = True
        there = sorted(self.world.kube.resources.items())
        self.world.random.shuffle(there)
        for (plural, _, _), body in there:
            self.changed(plural, body, deleted=False)
        await asyncio.wait({keeping})
        self.world.note(f"{self} has lost the Lease and exits")
        self.kill()

    def changed(self, plural, body, *, deleted):
        """The watch delivers all changes in order, sooner or later."""
        if self.alive and self.watching and self.world.loop.now >= self._blind_until:
            self._seen_until = max(self._seen_until + 1e-6, self.world.loop.now + self.world.faults.watch_delay())
            body = self.world.kube.copy(body)
            self.world.loop.call_at(self._seen_until, self._see, plural, body, deleted, context=self.context)

    def expire_watch(self, seconds):
        """The watch has expired (410): what changes meanwhile is not delivered, and then everything is listed again."""
        self._blind_until = self.world.loop.now + seconds
        self.world.loop.call_at(self._blind_until, self._list_again)

    def _list_again(self):
        for (plural, _, _), body in sorted(self.world.kube.resources.items()):
            self.changed(plural, body, deleted=False)

    def _see(self, plural, body, deleted):
        if not self.running.is_set():
            self._unseen.append((plural, body, deleted))
        elif self.alive:
            self.note_read(body)
            self.supervisor.seen(plural, body, deleted=deleted)

    def note_read(self, answer):
        """Note the throttles of the resources in what the API server has answered or reported."""
        for body in answer if isinstance(answer, list) else [answer]:
            if isinstance(body, dict) and "uid" in body.get("metadata", {}):
                unlimited = "unlimited" in body.get("spec", {}).get("throttle", {})
                self.throttles_read[body["metadata"]["uid"]].append((self.world.loop.now, unlimited))

    def note_partitions(self, states, began):
        """Note what a reading that began then has found, unless one that began later has ended before it.

        Plans are made beside the rounds, and have readings of their own.
        """
        latest = {tp: state for tp, state in states.items() if self._read_began.get(tp, began) <= began}
        self.read.update({tp: (state, self.world.loop.now) for tp, state in latest.items()})
        self._read_began.update(dict.fromkeys(latest, began))

    def may_be_unlimited(self, uid, since):
        """Whether a spec of the rebalance that asks for no throttle was the last one read at some time since then."""
        read = self.throttles_read[uid]
        before = [unlimited for at, unlimited in read if at < since][-1:]
        return any([*before, *(unlimited for at, unlimited in read if at >= since)])

    def kill(self):
        """Nothing is cleaned up: the actions of a cancelled task reach no server."""
        if self.alive:
            self.alive = False
            self.running.set()
            for task in list(self.tasks):
                task.cancel()

    def pause(self):
        """Until it resumes it sends and receives nothing, as a stopped process or a suspended machine."""
        self.running.clear()

    def resume(self):
        if self.alive and not self.running.is_set():
            self.running.set()
            unseen, self._unseen = self._unseen, []
            for one in unseen:
                self.context.run(self._see, *one)

    async def request(self, server, name, act, *, write, before=None):
        """Send one request to ``server``. ``act`` is carried out there even if this process dies meanwhile."""
        await self.running.wait()
        if not self.alive:
            raise asyncio.CancelledError
        self.requests += 1
        fate = self.world.faults.fate(self, server, write)
        if before is not None and write:
            before()
        killed = self.requests == self.kill_after
        if killed and self.world.random.random() < 0.5:
            self.world.note(f"{self} is killed before {server}.{name}")
            self.kill()
            raise asyncio.CancelledError
        delivery = contextvars.Context().run(self.world.loop.create_task, self._deliver(server, name, act, fate))
        delivery.add_done_callback(lambda done: done.cancelled() or done.exception())
        if killed:
            self.world.note(f"{self} is killed with {server}.{name} under way")
            self.kill()
            raise asyncio.CancelledError
        answer = await asyncio.shield(delivery)
        if self.pause_after_record and name in _RECORDS:
            self.pause_after_record = False
            self.pause()
            self.world.loop.call_later(_LONG_SECONDS, self.resume)
        await self.running.wait()
        if not self.alive:
            raise asyncio.CancelledError
        return answer

    async def _deliver(self, server, name, act, fate):
        await asyncio.sleep(fate.there)
        if fate.busy:
            raise from_response(name, 429, b"")
        if fate.late is not None:
            self.world.loop.call_later(fate.late, self._carry_out_late, server, name, act)
        if fate.lost_before:
            await asyncio.sleep(fate.patience)
            raise _no_answer(server, name)
        answer = act()
        self.world.judge.look()
        await asyncio.sleep(fate.back)
        if fate.lost_after:
            await asyncio.sleep(fate.patience)
            raise _no_answer(server, name)
        return answer

    def _carry_out_late(self, server, name, act):
        """Nobody waits for the answer any more."""
        self.world.note(f"{server}.{name} of {self} is carried out late")
        with contextlib.suppress(RebalanceError):
            act(late=True)
        self.world.judge.look()


def _no_answer(server, name):
    if server == "kafka":
        return Transient("KafkaUnreachable", f"{name}: no answer")
    return Transient("ApiServerUnreachable", f"{name}: no answer")


async def _no_load_models(_cluster_id):
    return None


class _KubeOf:
    """The API server, as one process reaches it. ``fence`` None: for its Lease."""

    def __init__(self, process, fence):
        self._process, self._fence = process, fence
        self.namespace = process.world.kube.namespace

    async def close(self):
        pass

    def __getattr__(self, name):
        if not hasattr(KubeClient, name):
            raise AttributeError(name)
        return partial(self._request, name)

    async def _request(self, name, *arguments, **options):
        process = self._process
        kube, write = process.world.kube, not name.startswith(_READS_OF_KUBE)
        before = self._fence.check if self._fence is not None else None

        def act(*, late=False):
            kube.by, kube.late = process, late
            if name in _WRITES_OF_RESOURCES and process.world.faults.rival():
                kube.changed_by_a_rival(arguments[:3])
            return at_once(getattr(kube, name)(*arguments, **options))

        answer = await process.request("kube", name, act, write=write, before=before)
        process.note_read(answer)
        return answer


@dataclass(frozen=True)
class Basis:
    """What an order is judged by: each partition as it was read before, and when the round before the last began.

    ``at``: when it was sent. ``late``: it is carried out after its sender has given it up. ``resource``: for which
    rebalance it is sent, as the audit log names it.
    """

    read: dict
    since: float
    at: float
    resource: str | None = None
    late: bool = False


class KafkaOf:
    """A client of the cluster in one process; orders pass the real fence, as in the adapter."""

    def __init__(self, process, settings, _owner):
        self._process = process
        self.host = settings.bootstrap_servers.partition(":")[0]
        self.rounds_began = [0.0, 0.0]
        """When the last two rounds began: each describes the cluster first."""
        self.basis = None
        """Of the order that is being carried out."""
        self._kafka = process.world.kafka

    async def close(self):
        pass

    async def describe_cluster(self):
        self.rounds_began = [self.rounds_began[1], self._process.world.loop.now]
        return self._kafka.at_listener(self.host, await self._read("describe_cluster"))

    async def describe_partitions(self, topics=None, listed=None):
        """Two sources, no snapshot, as the adapter: the controller's listing, then the metadata of a broker."""
        began = self._process.world.loop.now
        listed = await self._read("list_reassignments") if listed is None else listed
        states = await self._read("metadata", topics)
        for tp in listed.keys() & states.keys():
            row = listed[tp]
            states[tp] = self._kafka.merged(states[tp], row)
        self._process.note_partitions(states, began)
        return states

    async def topic_ids(self, topics=None):
        return await self._read("topic_ids", topics)

    async def list_reassignments(self):
        return await self._read("list_reassignments")

    async def topic_configs(self, topics, names):
        return await self._read("topic_configs", topics, names)

    async def broker_configs(self, brokers, names):
        return await self._read("broker_configs", brokers, names)

    async def log_dirs(self, brokers):
        answers = await self._read("log_dirs", brokers)
        for broker, dirs in answers.items():
            self._process.log_dirs_read[broker].append((self._process.world.loop.now, dirs))
        return answers

    async def authorized_operations(self, topics):
        return await self._read("authorized_operations", topics)

    async def alter_reassignments(self, orders):
        return await self._order("alter_reassignments", dict(orders)) if orders else {}

    async def elect_preferred(self, partitions):
        return await self._order("elect_preferred", list(partitions))

    async def alter_log_dirs(self, orders):
        return await self._order("alter_log_dirs", dict(orders)) if orders else {}

    async def alter_topic_configs(self, changes):
        return await self._order("alter_topic_configs", {key: list(value) for key, value in changes.items()})

    async def alter_broker_configs(self, changes):
        return await self._order("alter_broker_configs", {key: list(value) for key, value in changes.items()})

    async def _read(self, name, *arguments):
        act = partial(self._act, name, *arguments)
        return await self._process.request("kafka", name, act, write=False)

    async def _order(self, name, what):
        def send():
            act = partial(self._act, name, what, basis=self._basis())
            # The adapter checks the fence again just before it sends.
            return self._process.request("kafka", name, act, write=True, before=self._process.fence.check)

        return await self._process.fence.order(send)

    def _basis(self):
        resource = get_contextvars().get("resource")
        return Basis(dict(self._process.read), self.rounds_began[0], self._process.world.loop.now, resource)

    def _act(self, name, *arguments, basis=None, late=False):
        self._kafka.by, self.basis = self, basis and replace(basis, late=late)
        if late and name == "alter_broker_configs":
            arguments = [self._not_overtaken(arguments[0])]
        try:
            return at_once(getattr(self._kafka, name)(*arguments))
        finally:
            self._kafka.by = None

    def _not_overtaken(self, changes):
        """A broker carries out the changes of its own configs in their order."""
        done = self._kafka.configured_at
        return {broker: ops for broker, ops in changes.items() if done.get(broker, 0.0) <= self.basis.at}

    @property
    def process(self):
        return self._process
