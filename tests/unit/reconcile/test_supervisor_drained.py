"""`Drained` of a rebalance that loses its connection to the cluster after its end."""

from tests.fakes.shared_clusters import REF
from tests.unit.reconcile.test_supervisor_cordons import Cordoning

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES


def said(world, namespace):
    conditions = world.kube.resources[REBALANCES, namespace, "r"]["status"]["conditions"]
    return next((c["status"], c["reason"]) for c in conditions if c["type"] == "Drained")


async def test_is_unknown_without_permission(world):
    """Nobody reads the broker any more, and other plans may fill it."""
    world.servers["kafka"] = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 3 + [[1, 2, 4]])
    world.connection(names=["a"])
    world.create("a", kafka=REF, brokers={"decommission": [4]}, throttle={"unlimited": True})
    world.see()
    await world.until(lambda: world.state("a") == "Succeeded")
    assert said(world, "a") == ("True", "Drained")
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
    await world.until(lambda: said(world, "a") == ("Unknown", "DrainUnproved"))
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["a", "k"]})
    world.create("k", kafka=REF, topics={"include": ["none"]})
    world.see("k")
    await world.until(lambda: world.state("k") == "NothingToDo")
    assert (world.state("a"), said(world, "a")) == ("Succeeded", ("Unknown", "DrainUnproved"))


async def test_is_unknown_without_the_connection(world):
    """The KafkaConnection is deleted; another one, under which others work, may get the cluster."""
    world.servers["kafka"] = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 3 + [[1, 2, 4]])
    world.connection(names=["a"])
    world.create("a", kafka=REF, brokers={"decommission": [4]}, throttle={"unlimited": True})
    world.see()
    await world.until(lambda: world.state("a") == "Succeeded")
    world.gone(CONNECTIONS, "k", "prod")
    await world.until(lambda: said(world, "a") == ("Unknown", "DrainUnproved"))


async def test_stays_while_the_connection_cannot_be_read(world):
    """After a start it is not known yet whether the namespace is permitted. It may be corrected at any time."""
    world.servers["kafka"] = Cordoning([1, 2, 3, 4], orders=[[1, 2, 3]] * 3 + [[1, 2, 4]])
    world.connection(names=["a"])
    world.create("a", kafka=REF, brokers={"decommission": [4]}, throttle={"unlimited": True})
    world.see()
    await world.until(lambda: world.runs.get("a") == "Succeeded")
    await world.supervisor.stop()
    world.begin()
    world.kube.resources[CONNECTIONS, "k", "prod"]["spec"]["allowedNamespaces"] = 7
    world.create("b", kafka=REF)
    await world.supervisor.know(())
    await world.until(lambda: world.state("b") == "ConnectionNotFound")
    assert said(world, "a") == ("True", "Drained")
