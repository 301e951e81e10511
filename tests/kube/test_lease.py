"""The lease on a real API server with the shipped service account, and the fence before every write."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from e2e.bench.kube import KubeCluster
from e2e.bench.waiting import wait_until
from tests.kube.namespaces import Namespace

from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.api.v1alpha1 import FINALIZER, REBALANCES, parse_rebalance
from kafka_rebalance.app.system_clock import SystemClock
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.lease import LeadershipLost, LeaseHolder

pytestmark = pytest.mark.apiserver

DURATION = 6
NEVER = 3600
"""A lease that does not expire during a test."""


class Clock(SystemClock):
    """Its time advances only by ``sleep``, so no result depends on how long the API server takes."""

    def __init__(self) -> None:
        self.seconds, self.waits = 0.0, 0

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.waits += 1
        await asyncio.sleep(0.01)  # others use the API server too


def holder(client: KubeClient, identity: str, seconds: int = DURATION, clock: Clock | None = None) -> LeaseHolder:
    return LeaseHolder(client, "The-Lease", identity, clock or Clock(), seconds)


def lease(namespace: Namespace) -> Any:
    return json.loads(namespace.kubectl("get", "lease", "the-lease", "-o", "json"))["spec"]


class TestTwoHolders:
    """The API server stores and refuses what the rules rely on."""

    async def test_one_wins(self, namespace: Namespace, client: KubeClient) -> None:
        """Five that start at the same time: one leads, and the others wait for it."""
        clocks = [Clock() for _ in range(5)]
        many = [holder(client, name, NEVER, clock) for name, clock in zip("abcde", clocks, strict=True)]
        waiting = [asyncio.create_task(one.acquire()) for one in many]

        def settled() -> bool:
            return all(task.done() or clock.waits > 1 for task, clock in zip(waiting, clocks, strict=True))

        await asyncio.to_thread(wait_until, "each leads, or has seen twice that another one does", settled)
        assert [task.done() for task in waiting].count(True) == 1
        (winner,) = [one for one in many if one.is_leader()]
        assert lease(namespace)["holderIdentity"] == winner.identity
        for task in waiting:
            task.cancel()

    async def test_handed_over(self, namespace: Namespace, client: KubeClient) -> None:
        """A released Lease is acquired at once; transitions are counted."""
        first, second = holder(client, "a", NEVER), holder(client, "b", NEVER)
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await first.release()
        assert not first.is_leader()
        await waiting
        assert second.is_leader()
        found = lease(namespace)
        assert (found["holderIdentity"], found["leaseTransitions"], found["leaseDurationSeconds"]) == ("b", 1, NEVER)

    async def test_taken_from_the_dead(self, namespace: Namespace, client: KubeClient) -> None:
        """An operator that stops renewing knows about its loss before another one leads, and cannot renew later."""
        clock = Clock()
        first, second = holder(client, "a", DURATION, clock), holder(client, "b", DURATION, clock)
        await first.acquire()
        await second.acquire()
        assert (first.is_leader(), second.is_leader()) == (False, True)
        with pytest.raises(LeadershipLost, match="is held by b now"):
            await first.keep()
        assert lease(namespace)["holderIdentity"] == "b"

    async def test_kept(self, namespace: Namespace, client: KubeClient) -> None:
        """Renewed beyond its duration, annotated and deleted meanwhile, it keeps the same holder."""
        clock = Clock()
        first = holder(client, "a", DURATION, clock)
        await first.acquire()
        acquired = lease(namespace)["acquireTime"]
        keeping = asyncio.create_task(first.keep())
        await self._renewed(namespace)
        await asyncio.to_thread(namespace.kubectl, "annotate", "lease", "the-lease", "note=x")
        await self._renewed(namespace)
        await asyncio.to_thread(namespace.kubectl, "delete", "lease", "the-lease")
        await self._renewed(namespace)
        assert first.is_leader()
        assert clock.seconds > DURATION
        assert not keeping.done()
        found = lease(namespace)
        assert (found["acquireTime"], found["leaseTransitions"]) == (acquired, 0)
        keeping.cancel()

    async def _renewed(self, namespace: Namespace) -> None:
        """Wait for the next renewal."""
        query = ("get", "leases", "-o", "jsonpath={.items[*].spec.renewTime}")
        seen = set()
        async with asyncio.timeout(240):
            while len(seen) < 2:
                seen |= {await asyncio.to_thread(namespace.kubectl, *query)} - {""}


class TestRights:
    """The shipped role allows exactly these requests."""

    @pytest.fixture
    async def operator(self, cluster: KubeCluster) -> AsyncIterator[KubeClient]:
        kubeconfig = cluster.service_account_kubeconfig("kafka-rebalance", "kafka-rebalance-operator")
        connected = KubeClient.connect("kafka-rebalance", kubeconfig=str(kubeconfig))
        yield connected
        await connected.close()

    async def test_enough(self, cluster: KubeCluster, operator: KubeClient) -> None:
        """Acquire, renew, create again after a deletion, release."""
        first = holder(operator, "a")
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        place = ("-n", "kafka-rebalance", "lease", "the-lease")
        cluster.kubectl("delete", *place)
        await asyncio.to_thread(cluster.kubectl, "wait", "--for=create", "--timeout=240s", *place)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await first.release()
        assert cluster.get(*place)["spec"].get("holderIdentity", "") == ""
        cluster.kubectl("delete", *place)

    async def test_not_in_a_users_namespace(self, namespace: Namespace, operator: KubeClient) -> None:
        elsewhere = KubeClient(operator._api.configuration, namespace.name)
        with pytest.raises(Forbidden, match="leases"):
            await holder(elsewhere, "a").acquire()
        await elsewhere.close()


class TestFencedClient:
    """Without the lease all writes fail and all reads succeed."""

    async def test_every_write_is_refused(self, namespace: Namespace, client: KubeClient) -> None:
        namespace.apply("KafkaRebalance", {})
        about = parse_rebalance(namespace.get(REBALANCES)).metadata
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}}
        await client.create_config_map(body)
        fence = Fence(lambda: False)
        fenced = KubeClient(client._api.configuration, namespace.name, before_write=fence.check)
        changed = {**body, "data": {"a": "c"}}
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: fenced.create_config_map({**body, "metadata": {"name": "new"}}),
            lambda: fenced.replace_config_map("kept", changed),
            lambda: fenced.delete_config_map("kept"),
            lambda: fenced.patch_status(REBALANCES, namespace.name, "a", KafkaRebalanceStatus().as_patch()),
            lambda: fenced.patch_finalizers(REBALANCES, namespace.name, "a", [FINALIZER], about.resource_version),
            lambda: fenced.create_event("KafkaRebalance", about, "Planned", "planned"),
        ]
        for write in writes:
            with pytest.raises(Transient) as refused:
                await write()
            assert refused.value.reason == "NotLeading"
        kept = await fenced.get_config_map("kept")
        assert kept is not None
        assert kept["data"] == {"a": "b"}
        assert [found["name"] for found in await fenced.list_config_map_metadata({}) if found["name"] == "new"] == []
        found = await fenced.get(REBALANCES, namespace.name, "a")
        assert found is not None
        assert found["metadata"]["resourceVersion"] == about.resource_version
        assert await fenced.list_resources(REBALANCES, namespace.name)
        await fenced.close()
