"""Which resources a KafkaConnection permits, and what happens to open runs that lose it."""

import asyncio
import copy

import pytest
from tests.fakes.shared_clusters import REF, Away, Cluster, listener_of, placed

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.execution.reassignment_throttle import RATE_NAMES
from kafka_rebalance.reconcile.decide.throttle_claims import DEFAULT_RATE


class TestKafkaConnection:
    async def test_leads_to_its_cluster(self, world):
        """Its own namespace may always use it; another one if it is permitted."""
        world.connection(names=["a"])
        for namespace in ("a", "b", "k"):
            world.create(namespace, kafka=REF)
        world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        await world.until(lambda: {world.state("a"), world.state("k")} <= {"Succeeded", "NothingToDo"})
        await world.until(lambda: world.state("b") == "ConnectionNotPermitted")
        status = world.kube.resources[CONNECTIONS, "k", "prod"]["status"]
        assert (status["clusterId"], status["brokers"]) == ("c", {"live": 4})
        assert world.owner == {"namespace": "k", "connection": "prod"}

    async def test_edits_without_permission_wake_nobody(self, world, monkeypatch):
        """The rounds of the cluster are not for a namespace to order that may not use it."""
        world.connection(names=["a"])
        for namespace in ("a", "evil"):
            world.create(namespace, kafka=REF)
        world.see()
        await world.until(lambda: world.state("a") == "Succeeded" and world.state("evil") == "ConnectionNotPermitted")
        woken = []
        monkeypatch.setattr(world.supervisor._engines.get("c").engine, "wake", lambda: woken.append("c"))
        world.edit(REBALANCES, "evil", "r", execution={"suspend": True})
        world.create("evil", name="s", kafka=REF)
        world.create("evil", name="t", plural=REASSIGNMENT_THROTTLES, kafka=REF, freeze=True)
        world.see("evil")
        await world.until(lambda: world.state("evil", "t", REASSIGNMENT_THROTTLES) == "ConnectionNotPermitted")
        assert woken == []
        world.edit(REBALANCES, "a", "r", execution={"suspend": True})
        assert woken == ["c"]

    async def test_names_what_its_user_may_not(self, world):
        """Also while nothing is moved with it."""
        world.real.may -= {"AlterConfigs"}
        world.connection()
        world.see()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        status = world.kube.resources[CONNECTIONS, "k", "prod"]
        await world.until(lambda: status["status"].get("missingPermissions") == ["AlterConfigs on the cluster"])

    async def test_that_comes_later(self, world):
        """The resource waits for it."""
        world.create("a", kafka=REF)
        world.see()
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        world.connection()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_permits_by_labels(self, world):
        """As they are now."""
        world.connection(selector={"matchLabels": {"kafka": "prod"}})
        world.create("a", kafka=REF)
        world.see()
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.kube.labels["a"] = {"kafka": "prod", "more": "x"}
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_one_that_comes_while_labels_are_read(self, world, monkeypatch):
        """It was not judged with the others, so nothing is done for it, neither to move nor to freeze."""
        world.connection(selector={"matchLabels": {"kafka": "prod"}})
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        served, asked = placed(monkeypatch), []

        async def labels(namespace):
            asked.append(namespace)
            if len(asked) == 1:
                world.create("evil", name="late", kafka=REF, brokers={"decommission": [1]})
                world.create("evil", name="frozen", plural=REASSIGNMENT_THROTTLES, kafka=REF, freeze=True)
                world.see("evil")
            await asyncio.sleep(0)
            return {}

        monkeypatch.setattr(world.kube, "namespace_labels", labels)
        world.create("evil", kafka=REF)
        world.create("evil", name="s", kafka=REF)
        world.see("evil")
        await world.until(lambda: asked)
        await world.until(lambda: world.state("evil", "late") == "ConnectionNotPermitted")
        await world.until(lambda: world.state("evil", "frozen", REASSIGNMENT_THROTTLES) == "ConnectionNotPermitted")
        assert served == []


class TestPermission:
    """Open runs of a connection that is deleted, changed or no longer permitted."""

    async def forbidden_in_mid_run(self, world):
        """Namespace a loses its permission during a drain; the step in flight completes."""
        world.connection(names=["a"])
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))

    async def test_permission_that_is_lost_in_mid_run(self, world):
        """Steps in flight complete, and nothing new starts. With the permission back, the run continues."""
        await self.forbidden_in_mid_run(world)
        assert sum(1 in replicas for replicas in world.real.lists("orders")) == 3
        await world.restart()
        await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "All"})
        await world.until(lambda: world.state("a") == "Succeeded")

    @pytest.mark.parametrize("outranked", [False, True])
    async def test_an_edit_without_permission_sets_no_rate(self, world, monkeypatch, outranked):
        """The brokers are not for this namespace to slow down any more, before and after a restart."""
        if outranked:
            await world.draining()
            world.connection(names=["k"])
            await world.until(lambda: world.state("a") == "ClusterOwnedElsewhere")
        else:
            world.connection(names=["a"])
            await world.draining(kafka=REF)
            world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
            await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
        looks, describe = [], world.real.describe_partitions

        async def counted(*topics):
            looks.append(topics)
            return await describe(*topics)

        monkeypatch.setattr(world.real, "describe_partitions", counted)
        for restart in (False, True):
            world.edit(REBALANCES, "a", "r", throttle={"leaderRate": "1", "followerRate": f"{restart + 1}"})
            if restart:
                await world.restart()
            looks.clear()
            await world.until(lambda: len(looks) > 5)
            rates = {value for (_, name), value in world.real.values.items() if name in RATE_NAMES}
            assert rates == {str(DEFAULT_RATE)}

    async def test_a_deletion_without_permission(self, world):
        """It cancels reassignments in flight, and moves nothing back."""
        await self.forbidden_in_mid_run(world)
        moved = world.real.lists("orders")
        body = world.kube.delete(REBALANCES, "a", "r", world.clock.at.isoformat())
        world.supervisor.rebalance_seen(body, deleted=False)
        await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)
        assert (world.real.lists("orders"), world.runs["a"]) == (moved, "Reverted")

    async def test_is_deleted_in_mid_run(self, world):
        """The client in memory is enough to come to rest; the run goes on when the KafkaConnection is back."""
        world.connection()
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.gone(CONNECTIONS, "k", "prod")
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        assert sum(1 in replicas for replicas in world.real.lists("orders")) == 3
        await world.restart()
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        assert world.owner == {"namespace": "k", "connection": "prod"}
        world.connection()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_without_readable_metadata(self, world):
        """It cannot be reported anywhere but in the log; the others are served."""
        world.supervisor.connection_seen({"metadata": {"name": "prod"}, "spec": {}}, deleted=False)
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")

    async def test_whose_deletion_was_missed(self, world):
        """The watch may have a gap: within a minute or so, nothing uses it any more."""
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        del world.kube.resources[CONNECTIONS, "k", "prod"]
        await world.until(lambda: not list(world.supervisor._book))
        world.create("a", kafka=REF, brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("a")
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        assert world.real.altered == []

    async def test_its_cluster_does_not_change_under_an_open_run(self, world):
        """The run ends with the former connection; then the new cluster is used."""
        world.connection()
        await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
        world.servers["other"] = other = Cluster([7, 8], t=[[7, 8]])
        other.cluster_id = "d"
        world.create("b", kafka=REF)
        world.see("b")
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="other:9092")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "ClusterChanged")
        await world.until(lambda: world.state("b") == "ClusterChanged")
        assert other.altered == []
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        assert world.kube.resources[CONNECTIONS, "k", "prod"]["status"]["clusterId"] == "d"

    async def test_its_listener_may_be_moved(self, world):
        """The run goes on."""
        world.connection()
        await world.draining(kafka=REF)
        world.servers["new"] = listener_of(world.real, 9094)
        world.edit(CONNECTIONS, "k", "prod", bootstrapServers="new:9094")
        world.servers["kafka"] = Away()
        await world.restart()
        world.real.arrive()
        await world.until(lambda: world.state("a") == "Succeeded")

    async def test_of_another_cluster_takes_no_open_run(self, world):
        """An inline connection may be replaced, but not by one to another cluster."""
        await world.draining(1, execution={"parallelPartitionCount": 1})
        world.servers["other"] = other = Cluster([1, 2, 3, 4], orders=[[1, 2, 3]] * 4)
        other.cluster_id = "d"
        world.connection(server="other")
        world.edit(REBALANCES, "a", "r", kafka=REF)
        await world.until(lambda: world.state("a") == "OtherCluster")
        world.real.arrive()
        await world.until(lambda: not any(world.real.values.values()))
        assert (sum(1 in replicas for replicas in world.real.lists("orders")), other.altered) == (3, [])

    async def test_inline_connections_may_be_refused(self, world):
        """With --require-connections."""
        world.begin(inline=False)
        world.create("a")
        world.see()
        await world.until(lambda: world.state("a") == "InlineConnectionRefused")
        assert world.owner is None


class TestUnreadable:
    """A KafkaConnection that cannot be read after a restart: an earlier version does not know one of its fields."""

    @pytest.fixture
    async def unreadable(self, world):
        world.connection(names=["a"])
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.kube.resources[CONNECTIONS, "k", "prod"]["spec"]["later"] = True
        await world.supervisor.stop()
        world.begin()
        return world

    @pytest.mark.parametrize("named", [False, True])
    async def test_keeps_its_cluster(self, unreadable, named):
        """Also when the last resource that names it is gone. It works again when it can be read."""
        world = unreadable
        if named:
            world.create("a", kafka=REF)
        await world.supervisor.know([])
        if named:
            await world.until(lambda: world.state("a") == "ConnectionNotFound")
            world.gone(REBALANCES, "a", "r")
            await world.until(lambda: all(known.task.done() for known in world.supervisor._book))
        world.create("b", brokers={"decommission": [1]}, throttle={"unlimited": True})
        world.see("b")
        await world.until(lambda: world.state("b") not in {"", "Planning", "Queued"})
        assert (world.state("b"), world.owner["namespace"]) == ("ClusterOwnedElsewhere", "k")
        assert world.real.altered == []
        del world.kube.resources[CONNECTIONS, "k", "prod"]["spec"]["later"]
        world.see("k")
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")

    async def test_an_earlier_one_is_deleted_late(self, unreadable):
        """The watch reports the deletion after the later one was created."""
        await unreadable.supervisor.know([])
        earlier = copy.deepcopy(unreadable.kube.resources[CONNECTIONS, "k", "prod"])
        earlier["metadata"]["uid"] = "earlier"
        unreadable.supervisor.connection_seen(earlier, deleted=True)
        assert next(iter(unreadable.supervisor._book)).unread is not None

    async def test_keeps_nothing_when_it_is_deleted(self, unreadable):
        await unreadable.supervisor.know([])
        unreadable.gone(CONNECTIONS, "k", "prod")
        await unreadable.until(lambda: unreadable.owner is None)
