"""Resources whose deletion the watch has not reported, as after a gap: they are forgotten, not kept for ever."""

import pytest
from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.kube.api_errors import KindNotFound
from kafka_rebalance.model.ownership import Owner


@pytest.fixture
async def known(world):
    """A rebalance that was listed, and is gone before the watch begins; the engine runs without it."""
    world.create("a", name="ghost")
    world.see()
    world.kube.resources.pop((REBALANCES, "a", "ghost"))
    return world


async def without_ghost(world):
    await world.until(lambda: world.supervisor._engines.get("c"))
    engine = world.supervisor._engines.get("c").engine
    await world.until(lambda: engine.rebalances.keys() == {"u-2"})


class TestGone:
    async def test_does_not_return_with_the_next_one(self, known):
        """All resources of a connection are handed over again whenever one of them arrives."""
        known.create("a", name="s")
        known.supervisor.rebalance_seen(known.kube.resources[REBALANCES, "a", "s"], deleted=False)
        await known.until(lambda: known.state("a", "s") == "Succeeded")
        await without_ghost(known)
        known.create("a", name="limits", plural=REASSIGNMENT_THROTTLES, leaderRate="1Mi")
        known.see()
        await known.until(lambda: known.state("a", "limits", REASSIGNMENT_THROTTLES) == "NothingToThrottle")
        await without_ghost(known)
        assert known.supervisor.connection_of("u-1") is None

    async def test_does_not_keep_the_cluster(self, known):
        """The engine and the binding end with the last resource that exists."""
        known.create("a", name="s")
        known.supervisor.rebalance_seen(known.kube.resources[REBALANCES, "a", "s"], deleted=False)
        await known.until(lambda: known.state("a", "s") == "Succeeded")
        known.supervisor._hand_over(known.supervisor.connection_of("u-2"))
        known.gone(REBALANCES, "a", "s")
        await known.until(lambda: known.owner is None)

    async def test_with_a_kafka_connection(self, world):
        """The connection is looked at every few seconds; what is gone is not handed over again."""
        world.connection()
        world.create("a", kafka=REF)
        world.see()
        world.kube.resources.pop((REBALANCES, "a", "r"))
        await world.until(lambda: world.supervisor._engines.get("c"))
        engine = world.supervisor._engines.get("c").engine
        await world.until(lambda: world.supervisor.connection_of("u-2") is None)
        assert engine.rebalances == {}

    async def test_reported_again(self, world):
        """A rebalance that the API server did not find once, but reports again, is served."""
        world.create("a", execution={"suspend": True})
        world.see()
        body = world.kube.resources.pop((REBALANCES, "a", "r"))
        await world.until(lambda: world.supervisor._engines.get("c"))
        engine = world.supervisor._engines.get("c").engine
        await world.until(lambda: not engine.rebalances)
        world.kube.resources[REBALANCES, "a", "r"] = body
        world.see()
        await world.until(lambda: world.state("a") in {"NothingToDo", "Suspended"})


class TestNotServed:
    async def test_a_kind_that_is_not_served_for_a_moment(self, world, monkeypatch):
        """Nothing is forgotten: it goes on when the API server serves the kind again."""
        patch_status, asked = world.kube.patch_status, []

        async def unknown(*where):
            asked.append(where)
            raise KindNotFound("PATCH: HTTP 404")

        world.create("a", execution={"suspend": True})
        world.see()
        await world.until(lambda: world.state("a") == "Suspended")
        monkeypatch.setattr(world.kube, "patch_status", unknown)
        world.edit(REBALANCES, "a", "r", execution={"suspend": False})
        await world.until(lambda: asked)
        monkeypatch.setattr(world.kube, "patch_status", patch_status)
        await world.until(lambda: world.state("a") == "Succeeded")


class TestOfTheSameName:
    async def test_rebalance(self, world):
        """A resource of the same name replaces the earlier one, because both would write the same status."""
        world.create("a", execution={"suspend": True})
        world.see()
        await world.until(lambda: world.state("a") in {"NothingToDo", "Suspended"})
        world.create("a", execution={"suspend": True})
        world.see()
        assert world.supervisor.connection_of("u-1") is None
        assert world.supervisor.connection_of("u-2") is not None

    async def test_throttle(self, world):
        """The same for throttle resources."""
        world.create("a", plural=REASSIGNMENT_THROTTLES, leaderRate="1Mi")
        world.see()
        await world.until(lambda: world.state("a", plural=REASSIGNMENT_THROTTLES) == "NothingToThrottle")
        world.create("a", plural=REASSIGNMENT_THROTTLES, leaderRate="1Mi")
        world.see()
        assert [uid for known in world.supervisor._book for uid in known.throttles] == ["u-2"]

    @pytest.mark.parametrize("deleted", [True, False])
    async def test_late_events_of_a_former_connection(self, world, deleted):
        """It permitted all namespaces. The order of events is known for each uid, not for each name."""
        former = world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        del world.kube.resources[CONNECTIONS, "k", "prod"]
        present = world.connection(names=["a"])
        world.supervisor.connection_seen(former, deleted=deleted)
        world.create("a", kafka=REF)
        world.create("evil", kafka=REF)
        world.see("a", "evil")
        await world.until(lambda: world.state("evil") == "ConnectionNotPermitted")
        await world.until(lambda: world.state("a") == "Succeeded")
        world.supervisor.connection_seen(present, deleted=True)
        await world.until(lambda: world.supervisor._book.of_owner(Owner("k", "prod")).resource is None)

    async def test_a_connection_that_cannot_be_read(self, world):
        """It may permit fewer namespaces than the former one, whose permissions end."""
        world.connection()
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
        world.connection(see=False)
        world.kube.resources[CONNECTIONS, "k", "prod"]["spec"]["later"] = True
        world.see("k")
        world.create("a", kafka=REF)
        world.see("a")
        await world.until(lambda: world.state("a") == "ConnectionNotFound")
        assert world.state("k", "prod", CONNECTIONS) == "InvalidSpec"
        del world.kube.resources[CONNECTIONS, "k", "prod"]["spec"]["later"]
        world.see("k")
        await world.until(lambda: world.state("a") == "Succeeded")
