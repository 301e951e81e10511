"""A partition that a way back leaves above its replication factor holds up no plan, and is brought back to it."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import Renamed
from tests.unit.reconcile.test_engine_dead_brokers import die

from kafka_rebalance.model.topology import TopicPartition

FAST = {"unlimited": True}


def led(kafka):
    """One of those in sync leads each partition."""
    for tp, state in kafka.states.items():
        kafka.states[tp] = replace(state, leader=state.leader if state.leader in state.isr else min(state.isr))


def in_sync_again(kafka, *brokers):
    """They are not behind any more."""
    for tp, state in kafka.states.items():
        kafka.states[tp] = replace(state, isr=state.isr.union(brokers).intersection(state.replicas))


def return_of(kafka, *brokers):
    """They are live and in sync again."""
    kafka.brokers |= {b: replace(kafka.brokers[5], id=b) for b in brokers}
    in_sync_again(kafka, *brokers)


async def copied_when_they_die(*dead, behind=(), rows=((1, 2, 3),), brokers=range(1, 13), min_insync=1):
    """One partition has its copy, and no replica is dropped for it: these brokers are dead, and these are behind."""
    kafka = KafkaInMemory(brokers, t=[list(row) for row in rows])
    kafka.values["t", "min.insync.replicas"] = str(min_insync)
    operator = Renamed(kafka)
    execution = {"parallelPartitionCount": 1, "maxUnhealthy": 100}
    operator.apply(throttle=FAST, brokers={"decommission": [1]}, execution=execution)
    kafka.slow = set(kafka.brokers)
    await operator.until_true(lambda: kafka.flying)
    kafka.arrive()
    die(kafka, *dead)
    for tp, state in kafka.states.items():
        kafka.states[tp] = replace(state, isr=state.isr - set(behind))
    led(kafka)
    for _ in range(80):
        await operator.round()
    assert max(map(len, kafka.lists("t"))) == len(rows[0]) + 1
    return operator


async def killed_after(rounds, operator):
    """The next operator starts."""
    for _ in range(rounds):
        await operator.engine.tick()
        operator.clock.at += timedelta(seconds=1)
        await asyncio.sleep(0)
    operator.restart()


class TestPlannedAgain:
    """The revert before the new plan cannot drop the surplus beside dead replicas."""

    @pytest.mark.parametrize("min_insync", [1, 2])
    async def test_without_the_dead(self, min_insync):
        """The edit that empties the dead brokers is planned, and leads to as many replicas as before the run."""
        operator = await copied_when_they_die(2, 3, min_insync=min_insync)
        operator.edit(brokers={"decommission": [1, 2, 3]})
        await operator.until("Succeeded")
        (held,) = operator.kafka.lists("t")
        assert len(held) == 3
        assert not {1, 2, 3}.intersection(held)

    @pytest.mark.parametrize("rounds", range(1, 9))
    async def test_killed_meanwhile(self, rounds):
        """What the partition had before is stored, and the next operator finds again what cannot be dropped."""
        operator = await copied_when_they_die(2, 3)
        operator.edit(brokers={"decommission": [1, 2, 3]})
        await killed_after(rounds, operator)
        await operator.until("Succeeded")
        (held,) = operator.kafka.lists("t")
        assert len(held) == 3
        assert not {1, 2, 3}.intersection(held)

    async def test_two_replicas(self):
        """One of which is dead, and the copy of the other is there."""
        operator = await copied_when_they_die(2, rows=[(1, 2)])
        operator.edit(brokers={"decommission": [1, 2]})
        await operator.until("Succeeded")
        (held,) = operator.kafka.lists("t")
        assert len(held) == 2
        assert not {1, 2}.intersection(held)

    async def test_the_copy_is_dead_too(self):
        """Neither the origin nor the new target names its broker: it is one of the run all the same."""
        operator = await copied_when_they_die(2, 3)
        (held,) = operator.kafka.lists("t")
        die(operator.kafka, copy := held[3])
        led(operator.kafka)
        for _ in range(80):
            await operator.round()
        operator.edit(brokers={"decommission": [1, 2, 3, copy]})
        await operator.until("Succeeded")
        (held,) = operator.kafka.lists("t")
        assert len(held) == 3
        assert not {1, 2, 3, copy}.intersection(held)

    async def test_nothing_to_move(self):
        """The new plan only brings the partition back to its replication factor, when Kafka can drop a replica."""
        operator = await copied_when_they_die(2, 3)
        operator.edit(topics={"pinned": ["t"]}, brokers={"include": [1, 4, 5, 6]})
        for _ in range(20):
            await operator.round()
        assert operator.state == "Rebalancing"
        assert "ReplicaNotInSync" in operator.message
        return_of(operator.kafka, 2, 3)
        await operator.until("Succeeded")
        assert [len(held) for held in operator.kafka.lists("t")] == [3]

    @pytest.mark.parametrize("topics", [{"include": ["u"]}, {"pinned": ["t"]}], ids=["not selected", "pinned"])
    async def test_a_larger_factor_of_others(self, topics):
        """The replication factor of the edited spec is not for this partition."""
        operator = await copied_when_they_die(2, 3)
        operator.kafka.create("u", [[5, 6, 7]])
        operator.edit(topics=topics, brokers={"include": [1, 4, 5, 6, 7, 8]}, replicationFactor=4)
        for _ in range(60):
            await operator.round()
        return_of(operator.kafka, 2, 3)
        await operator.until("Succeeded")
        assert [len(held) for held in operator.kafka.lists("t")] == [3]
        assert [len(held) for held in operator.kafka.lists("u")] == [4]

    async def test_a_larger_factor(self):
        """The copy is one of those that the edited spec asks for: it stays."""
        operator = await copied_when_they_die(2, 3)
        operator.edit(brokers={"decommission": [2, 3]}, replicationFactor=4)
        await operator.until("Succeeded")
        (held,) = operator.kafka.lists("t")
        assert len(held) == 4
        assert {1, 4} <= set(held)

    async def test_the_others_of_the_run(self):
        """They move although the partition waits for the dead brokers."""
        operator = await copied_when_they_die(2, 3, rows=[(1, 2, 3), (1, 5, 6), (1, 7, 8)])
        operator.edit(brokers={"decommission": [1, 2, 3, 5]})
        await operator.until("Succeeded")
        assert all(len(held) == 3 and not {1, 2, 3, 5}.intersection(held) for held in operator.kafka.lists("t"))

    async def test_undo_returns_to_the_size_before(self):
        """The origin of the run stays that of before both plans."""
        operator = await copied_when_they_die(2, 3)
        operator.edit(brokers={"decommission": [1, 2, 3]})
        await operator.until("Succeeded")
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        assert [len(held) for held in operator.kafka.lists("t")] == [3]


class TestCopiesInFlight:
    """With R = 2, the second copy of a partition is made while it is above its replication factor."""

    async def in_flight(self):
        """The partition that has its first copy and waits for the second one."""
        kafka = KafkaInMemory(range(1, 13), t=[[1, 2, 3]] * 3)
        operator = Renamed(kafka)
        execution = {"parallelReplicaCount": 2, "parallelPartitionCount": 1, "maxUnhealthy": 100}
        operator.apply(throttle=FAST, brokers={"include": [4, 5, 6]}, execution=execution)

        def second():
            found = [s for s in kafka.states.values() if s.adding and len(s.replicas) - len(s.adding) > 3]
            if not found:
                kafka.arrive()
                kafka.slow = set(kafka.brokers)
            return found

        await operator.until_true(second)
        return operator, second()[0]

    async def test_one_that_the_new_plan_makes_too(self):
        """It continues. The plan does not wait for it."""
        operator, found = await self.in_flight()
        operator.edit(topics={"include": ["t"]})
        await operator.until("Superseded")
        await operator.until("Rebalancing")
        assert operator.kafka.states[found.tp] == found
        operator.kafka.arrive()
        operator.kafka.slow = set()
        await operator.until("Succeeded")
        assert [sorted(held) for held in operator.kafka.lists("t")] == [[4, 5, 6]] * 3

    async def test_one_that_the_new_plan_does_not_make(self):
        """It is cancelled at once."""
        operator, _ = await self.in_flight()
        operator.edit(brokers={"include": [7, 8, 9]})
        operator.kafka.slow = set()
        await operator.until("Succeeded")
        assert [sorted(held) for held in operator.kafka.lists("t")] == [[7, 8, 9]] * 3

    async def test_one_to_a_dead_broker(self):
        """The edit that names other brokers is planned although the copy never arrives."""
        operator, found = await self.in_flight()
        die(operator.kafka, *found.adding)
        for _ in range(70):
            await operator.round()
        operator.edit(brokers={"include": [b for b in (4, 5, 6, 7) if b not in found.adding]})
        operator.kafka.slow = set()
        await operator.until("Succeeded")
        assert all(len(held) == 3 and {4, 5, 6, 7}.issuperset(held) for held in operator.kafka.lists("t"))

    @pytest.mark.parametrize("rounds", range(1, 9))
    async def test_killed_meanwhile(self, rounds):
        """The next operator finds the copy in flight, and the partition above its replication factor."""
        operator, _ = await self.in_flight()
        operator.edit(brokers={"include": [7, 8, 9]})
        operator.kafka.slow = set()
        await killed_after(rounds, operator)
        await operator.until("Succeeded")
        assert [sorted(held) for held in operator.kafka.lists("t")] == [[7, 8, 9]] * 3


class TestGrown:
    """A larger replication factor, with min.insync.replicas above the one before: the copies may not be dropped."""

    @pytest.mark.parametrize(("factor", "at_once"), [(2, 1), (3, 2)])
    @pytest.mark.parametrize("edited", [True, False], ids=["edited", "deleted"])
    async def test_a_copy_that_arrives_before_the_new_plan(self, factor, at_once, edited):
        """Only the surplus is dropped."""
        kafka = KafkaInMemory(range(1, 8), t=[[1]])
        kafka.values["t", "min.insync.replicas"] = "2"
        operator = Renamed(kafka)
        execution = {"parallelReplicaCount": at_once}
        operator.apply(throttle=FAST, replicationFactor=factor, brokers={"decommission": [1]}, execution=execution)

        def above():
            (held,) = kafka.lists("t")
            if not kafka.flying or len(held) <= factor:
                kafka.arrive()
                kafka.slow = set(kafka.brokers)
                return False
            return True

        kafka.slow = set(kafka.brokers)
        await operator.until_true(above)
        if edited:
            operator.edit(brokers={"decommission": [1, 7]})
        else:
            operator.delete()
        kafka.arrive()
        if edited:
            await operator.until("Succeeded")
        else:
            await operator.until_true(lambda: not operator.kube.resources)
        (held,) = kafka.lists("t")
        assert len(held) == factor
        assert not edited or not {1, 7}.intersection(held)


class TestHeirs:
    """A resource that takes a run over keeps the replication factors of before."""

    async def test_dead_brokers(self):
        """The surplus that the revert had to leave is dropped by the plan of the heir."""
        operator = await copied_when_they_die(2, 3)
        operator.delete()
        operator.apply_another(throttle=FAST, brokers={"decommission": [1, 2, 3]}, takesOver="r")
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert operator.ends == ["TakenOver"]
        (held,) = operator.kafka.lists("t")
        assert len(held) == 3
        assert not {1, 2, 3}.intersection(held)

    @pytest.mark.parametrize("stays", [True, False], ids=["held", "dropped"])
    async def test_the_copy_is_dead_too(self, stays):
        """Only the run that is taken over had its broker. It may be emptied, also if it holds nothing any more."""
        operator = await copied_when_they_die(2)
        (held,) = operator.kafka.lists("t")
        die(operator.kafka, copy := held[3])
        led(operator.kafka)
        for _ in range(80):
            await operator.round()
        if not stays:
            tp = TopicPartition("t", 0)
            operator.kafka.states[tp] = replace(operator.kafka.states[tp], replicas=tuple(held[:3]))
        operator.delete()
        operator.apply_another(throttle=FAST, brokers={"decommission": [1, 2, copy]}, takesOver="r")
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert operator.ends == ["TakenOver"]
        (held,) = operator.kafka.lists("t")
        assert len(held) == 3
        assert not {1, 2, copy}.intersection(held)

    async def test_it_selects_something_else(self):
        """The surplus is dropped all the same: the partition is one of the run."""
        operator = await copied_when_they_die(2, 3)
        operator.kafka.create("u", [[1, 5, 6]])
        operator.delete()
        operator.apply_another(throttle=FAST, brokers={"decommission": [1]}, topics={"include": ["u"]}, takesOver="r")
        for _ in range(60):
            await operator.round()
        return_of(operator.kafka, 2, 3)
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert [len(held) for held in operator.kafka.lists("t")] == [3]

    async def test_let_go_above_it(self):
        """The run that was let go waited for a replica that was behind, because Kafka would have dropped nothing."""
        operator = await copied_when_they_die(2, behind=[3])
        operator.apply_another(throttle=FAST, brokers={"decommission": [1, 2]}, takesOver="r")
        await operator.round()
        operator.delete()
        for _ in range(5):
            await operator.round()
        assert operator.kafka.lists("t") == [[1, 2, 3, 4]]
        operator.order("kafkarebalance.dev/let-go", "true")
        await operator.until_true(lambda: operator.kafka.lists("t") != [[1, 2, 3, 4]])
        in_sync_again(operator.kafka, 3)
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        (held,) = operator.kafka.lists("t")
        assert len(held) == 3
        assert not {1, 2}.intersection(held)

    @pytest.mark.parametrize("selected", ["t", "u"])
    @pytest.mark.parametrize("at_once", [1, 2])
    async def test_let_go_with_a_copy_in_flight(self, at_once, selected):
        """Its cancellation waited for min.insync.replicas. The copy belongs to the heir, whatever its plan makes."""
        kafka = KafkaInMemory(range(1, 13), t=[[1, 2, 3]], u=[[1, 7, 8]])
        kafka.values["t", "min.insync.replicas"] = "2"
        operator = Renamed(kafka)
        execution = {"parallelReplicaCount": at_once, "maxUnhealthy": 100}
        operator.apply(throttle=FAST, brokers={"include": [4, 5, 6]}, topics={"include": ["t"]}, execution=execution)
        tp, kafka.slow = TopicPartition("t", 0), set(kafka.brokers)
        await operator.until_true(lambda: kafka.flying)
        if at_once == 2:
            kafka.arrive()
            kafka.slow = set(kafka.brokers)
            await operator.until_true(lambda: len(kafka.states[tp].replicas) == 5)
        state = kafka.states[tp]
        kafka.states[tp] = replace(state, isr=frozenset({state.leader, *state.adding}))
        spec = {"brokers": {"decommission": [1]}, "topics": {"include": [selected]}, "execution": {"maxUnhealthy": 100}}
        operator.apply_another(throttle=FAST, takesOver="r", **spec)
        await operator.round()
        operator.delete()
        for _ in range(5):
            await operator.round()
        assert kafka.states[tp].adding == state.adding
        operator.order("kafkarebalance.dev/let-go", "true")
        for _ in range(30):
            await operator.round()
        assert kafka.states[tp].adding == state.adding
        in_sync_again(kafka, *state.replicas)
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert [len(held) for held in kafka.lists("t") + kafka.lists("u")] == [3, 3]


class TestOneBehind:
    """One original broker is dead, and another one lives but is behind at this moment."""

    async def test_a_deletion_drops_the_dead_one(self):
        """Kafka would drop nothing beside it."""
        operator = await copied_when_they_die(2, behind=[3])
        operator.delete()
        await operator.until_true(lambda: not operator.kube.resources)
        (held,) = operator.kafka.lists("t")
        assert sorted(held) == [1, 3, 4]

    async def test_a_renamed_resource(self):
        """It does not name the old one, so it comes too late to be its heir."""
        operator = await copied_when_they_die(2, behind=[3])
        operator.delete()
        operator.apply_another(throttle=FAST, brokers={"decommission": [1, 2]})
        for _ in range(30):
            await operator.round()
        in_sync_again(operator.kafka, 3)
        for _ in range(60):
            await operator.round()
        assert [len(held) for held in operator.kafka.lists("t")] == [3]
