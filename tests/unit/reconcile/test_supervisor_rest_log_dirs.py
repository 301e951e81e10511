"""Copies between log dirs that are in flight when a rest ends are those of others."""

import pytest
from tests.fakes.shared_clusters import REF, Cluster
from tests.unit.reconcile.log_dir_runs import ONE, A, B, C
from tests.unit.reconcile.test_supervisor_rest import permitted_again, rested
from tests.unit.reconcile.test_supervisor_undo_permission import refused, rounds_later

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Transient

LOG_DIRS = {"strategy": "LogDirs", "goals": {"logDirs": {"band": "10%"}}, "topics": {"include": ["t"]}}


@pytest.fixture
async def copied_back(world):
    """A run has moved two of its four replicas on broker 1, and rests; others copy the first one back there."""
    kafka = world.servers["kafka"] = world.real = Cluster([1, 2], t=[[1]] * 6, u=[[2]])
    kafka.dirs = {ONE: (A, B, C), 2: (A, B, C)}
    kafka.crawling = {ONE}
    world.connection(names=["a", "k"])
    world.create("a", kafka=REF, execution={"maxPerBroker": {"betweenLogDirs": 2}}, **LOG_DIRS)
    world.see("a")
    await world.until(lambda: len(kafka.future) == 2)
    await refused(world)
    world.theirs = next(iter(kafka.future))
    kafka.copied()
    await world.until(lambda: rested(world))
    kafka.crawling = {ONE}
    await kafka.alter_log_dirs({world.theirs: A})
    kafka.dir_calls.clear()
    return world


async def left_to_others(world):
    """The run goes on beside their copy; neither that nor its deletion concerns it."""
    kafka = world.real
    await world.until(lambda: kafka.dir_calls)
    body = world.kube.delete(REBALANCES, "a", "r", world.clock.at.isoformat())
    world.supervisor.rebalance_seen(body, deleted=False)
    await world.until(lambda: A in {path for _, _, path in kafka.dir_calls})
    assert kafka.future[world.theirs] == A
    kafka.copied()
    await world.until(lambda: (REBALANCES, "a", "r") not in world.kube.resources)
    assert str(world.theirs[0]) not in {name for name, _, _ in kafka.dir_calls}


async def test_with_permission_the_run_goes_on(copied_back):
    permitted_again(copied_back)
    await left_to_others(copied_back)


async def test_not_before_every_live_broker_has_described_its_log_dirs(copied_back):
    copied_back.real.dirs_denied = Transient("KafkaUnreachable", "no answer")
    permitted_again(copied_back)
    await rounds_later(copied_back)
    assert rested(copied_back)
    assert copied_back.state("a") == "LogDirsUnknown"
    copied_back.real.dirs_denied = None
    await left_to_others(copied_back)


async def test_a_broker_that_comes_back_after_the_end_of_the_rest(copied_back):
    """What it copied was not seen when the rest ended."""
    kafka = copied_back.real
    down = kafka.brokers.pop(ONE)
    for partition in range(6):
        kafka.lead("t", partition, None)
    permitted_again(copied_back)
    await copied_back.until(lambda: not rested(copied_back))
    kafka.brokers[ONE] = down
    for partition in range(6):
        kafka.lead("t", partition, 1)
    await left_to_others(copied_back)
