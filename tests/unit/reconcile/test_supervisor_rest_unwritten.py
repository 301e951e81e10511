"""The record that a partition was moved by others cannot be written when a rest ends, and their move arrives then."""

import pytest
from tests.fakes.shared_clusters import REF
from tests.unit.reconcile.test_supervisor_rest import FIRST, permitted_again, rested
from tests.unit.reconcile.test_supervisor_undo_permission import refused, rounds_later

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.model.topology import BrokerId, replicas_of

THEIRS = [1, 4, 3]


class Writes:
    """Origins are not written from now on, or each write is carried out without an answer (``carried_out``)."""

    def __init__(self, world, *, carried_out):
        self.kube, self.real, self.carried_out = world.kube, world.kube.replace_config_map, carried_out
        self.tried = 0
        self.kube.replace_config_map = self.replace

    async def replace(self, name, body):
        if not name.startswith("origins-"):
            return await self.real(name, body)
        self.tried += 1
        if self.carried_out:
            await self.real(name, body)
        raise Transient("ApiServerUnreachable", "no answer", retry_after=5.0)

    def succeed(self):
        self.kube.replace_config_map = self.real


@pytest.mark.parametrize("carried_out", [False, True])
@pytest.mark.parametrize("killed", [False, True])
async def test_what_others_have_moved_is_not_the_runs(world, carried_out, killed):
    """The run moves the partition again, and a deletion returns it to where others have moved it.

    If the operator is killed before anything was written, what others have moved meanwhile cannot be distinguished.
    """
    world.connection(names=["a", "k"])
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    await refused(world)
    world.real.arrive()
    await world.until(lambda: rested(world))
    world.real.slow = {BrokerId(1)}
    await world.real.alter_reassignments({FIRST: replicas_of(*THEIRS)})
    writes, orders = Writes(world, carried_out=carried_out), len(world.real.altered)
    permitted_again(world)
    await world.until(lambda: writes.tried)
    world.real.slow = set()
    world.real.arrive()
    await rounds_later(world)
    assert rested(world)
    assert world.real.altered[orders:] == []
    if killed:
        await world.restart()
    writes.succeed()
    await world.until(lambda: 1 not in world.real.lists("orders")[0])
    assert not rested(world)
    await world.deleted("a")
    first = [1, 2, 3] if killed and not carried_out else THEIRS
    assert world.real.lists("orders") == [first, *[[1, 2, 3]] * 3]


async def test_it_is_written_before_the_run_goes_on(world):
    """Also if it was struck off in memory before. Nothing else is recorded before the operator is killed."""
    world.connection(names=["a", "k"])
    await world.draining(1, kafka=REF, execution={"parallelPartitionCount": 1})
    await refused(world)
    world.real.arrive()
    await world.until(lambda: rested(world))
    world.edit(REBALANCES, "a", "r", execution={"parallelPartitionCount": 1, "suspend": True})
    world.real.slow = {BrokerId(1)}
    await world.real.alter_reassignments({FIRST: replicas_of(*THEIRS)})
    writes, orders = Writes(world, carried_out=False), len(world.real.altered)
    permitted_again(world)
    await world.until(lambda: writes.tried)
    await rounds_later(world)
    writes.succeed()
    await world.until(lambda: not rested(world))
    await world.restart()
    await world.deleted("a")
    assert world.real.altered[orders:] == []
    assert world.real.flying == {"orders-0"}
