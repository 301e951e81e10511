"""A Kafka cluster was replaced: another one answers at its addresses. What names the old one can be deleted."""

import pytest
from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, LET_GO_ANNOTATION, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.reconcile import engine


@pytest.fixture
async def replaced(world, monkeypatch):
    """The old cluster had a copy in flight, under a throttle."""
    monkeypatch.setattr(engine, "IDLE_SECONDS", 0.02)
    world.connection()
    world.create("a", name="t", plural=REASSIGNMENT_THROTTLES, kafka=REF, leaderRate="1Mi")
    world.see()
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    await world.until(lambda: world.state("a", "t", REASSIGNMENT_THROTTLES) == "Applied")
    world.real.cluster_id = "d"
    world.real.values.clear()
    world.supervisor._engines.get("c").engine.wake()
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "OtherCluster")
    return world


def delete(world, plural, name):
    """The resource is gone when no finalizer holds it any more."""
    body = world.kube.delete(plural, "a", name, world.clock.at.isoformat())
    world.supervisor.seen(plural, body, deleted=False)


async def let_go(world):
    """The rebalance is gone at once."""
    body = world.kube.resources[REBALANCES, "a", "r"]
    body["metadata"].setdefault("annotations", {})[LET_GO_ANNOTATION] = "true"
    delete(world, REBALANCES, "r")
    await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)


async def test_a_throttle_resource_does_not_wait_for_it(replaced):
    """As for a cluster that cannot be reached: nothing will ever be restored there."""
    delete(replaced, REASSIGNMENT_THROTTLES, "t")
    await replaced.until(lambda: (REASSIGNMENT_THROTTLES, "a", "t") not in replaced.kube.resources)


async def test_the_record_of_its_throttles_can_be_deleted(replaced):
    """The message names it, since nothing else ends the work that is on record there."""
    delete(replaced, REASSIGNMENT_THROTTLES, "t")
    await let_go(replaced)
    await replaced.until(lambda: not replaced.kube.resources.keys() - {("kafkaconnections", "k", "prod")})
    replaced.gone(CONNECTIONS, "k", "prod")
    replaced.connection()
    await replaced.until(lambda: replaced.state("k", "prod", CONNECTIONS) == "ClusterChanged")
    ledger = next(name for name in replaced.kube.config_maps if name.startswith("ledger-"))
    where = f"delete ConfigMap {replaced.kube.namespace}/{ledger}"
    otherwise = f"If cluster c cannot be reached any more, restore them by hand and {where}"
    assert replaced.ready("k", "prod", CONNECTIONS)[1].endswith(otherwise)
    del replaced.kube.config_maps[ledger]
    await replaced.until(lambda: replaced.state("k", "prod", CONNECTIONS) == "Connected")
    assert replaced.kube.resources[CONNECTIONS, "k", "prod"]["status"]["clusterId"] == "d"


async def test_a_connection_that_is_created_again_at_once(world, monkeypatch):
    """As by kubectl replace --force: the deletion and the new one may be seen together."""
    monkeypatch.setattr(engine, "IDLE_SECONDS", 0.02)
    world.connection()
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    world.real.cluster_id = "d"
    world.supervisor._engines.get("c").engine.wake()
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "OtherCluster")
    world.gone(CONNECTIONS, "k", "prod")
    world.connection()
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "Connected")
    assert world.kube.resources[CONNECTIONS, "k", "prod"]["status"]["clusterId"] == "d"
