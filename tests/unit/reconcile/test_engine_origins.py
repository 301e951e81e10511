"""A way back leads to what each partition was when the run first sent it something: what others did is theirs."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.origin_runs import FAST, ONE, OTHERS, deleted, recorded, undone

from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import OriginStore
from kafka_rebalance.model.topology import TopicPartition


@pytest.fixture
def kafka():
    return KafkaInMemory(range(1, 8), t=[[1, 2, 3]] * 4)


class TestBeforeTheFirstStep:
    async def test_a_plan_that_has_sent_nothing_leaves_nothing_to_go_back_to(self, kafka):
        """It waits for approval, others move everything, the spec is edited: undo leads to what they made of it."""
        operator = OperatorInMemory(kafka)
        operator.apply(approval={"policy": "Manual"}, throttle=FAST, brokers={"include": [1, 2, 3, 4]})
        await operator.until("AwaitingApproval")
        assert await recorded(operator) == {}
        planned = operator.run
        for number in range(4):
            kafka.assign("t", number, 5, 6, 7)
        operator.edit(brokers={"include": [4, 5, 6, 7]}, approval={"policy": "Automatic"})
        await operator.until("Succeeded")
        assert operator.run.run_id != planned.run_id
        await undone(operator)
        assert kafka.lists("t") == [[5, 6, 7]] * 4

    @pytest.mark.parametrize("restart", [False, True])
    async def test_what_others_moved_before_it_was_reached(self, kafka, restart):
        """The new plan for their changes is made in the same run, which had not touched these partitions."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        (flying,) = kafka.flying
        untouched = [number for number in range(4) if f"t-{number}" != flying][:2]
        for number in untouched:
            kafka.assign("t", number, 7, 2, 3)
        kafka.arrive()
        if restart:
            operator.restart()
        await operator.until("Succeeded")
        assert all(set(held) == {4, 5, 6} for held in kafka.lists("t"))
        await undone(operator)
        assert kafka.lists("t") == [[7, 2, 3] if n in untouched else [1, 2, 3] for n in range(4)]

    async def test_the_same_brokers_in_another_order(self, kafka):
        """Nothing has drifted, and still it is not the list that the plan was made from."""
        operator = OperatorInMemory(kafka)
        operator.apply(approval={"policy": "Manual"}, throttle=FAST, brokers=OTHERS)
        await operator.until("AwaitingApproval")
        kafka.assign("t", 3, 3, 2, 1)
        operator.edit(approval={"policy": "Automatic"})
        await operator.until("Succeeded")
        await undone(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 3 + [[3, 2, 1]]


class TestAfterTheFirstStep:
    async def test_what_others_moved_since_is_theirs(self, kafka):
        """The run moved it, others moved it elsewhere, the run moved it again: it goes back to what they chose."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        (flying,) = kafka.flying
        number = int(flying.removeprefix("t-"))
        kafka.arrive()
        for n in range(4):
            kafka.assign("t", n, 7, 2, 3)
        await operator.until("Succeeded")
        assert set(kafka.lists("t")[number]) == {4, 5, 6}
        await undone(operator)
        assert kafka.lists("t") == [[7, 2, 3]] * 4

    async def test_what_others_moved_since_its_second_step_is_theirs(self, kafka):
        """It is on record that the first call was carried out. The origin goes with the new plan all the same."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        (first,) = kafka.flying
        number = int(first.removeprefix("t-"))
        while set(kafka.lists("t")[number]) != {4, 5, 6}:
            kafka.arrive()
            kafka.slow = {4, 5, 6}
            await operator.round()
        await operator.until_true(lambda: bool(kafka.flying))
        origins = await OriginStore(operator.kube).load("u-1", operator.run.run_id)
        assert [str(tp) for tp, origin in origins.items() if not origin.first_call] == [first]
        kafka.arrive()
        for n in range(4):
            kafka.assign("t", n, 7, 2, 3)
        await operator.until("Succeeded")
        assert all(set(held) == {4, 5, 6} for held in kafka.lists("t"))
        await undone(operator)
        assert kafka.lists("t") == [[7, 2, 3]] * 4

    async def test_the_first_list_counts_over_several_plans(self, kafka):
        """Superseded twice, the run leads back to before its first step."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS)
        kafka.slow = {4}
        await operator.until_true(lambda: bool(kafka.flying))
        operator.edit(brokers={"include": [5, 6, 7]})
        await operator.until_true(lambda: all(set(held) & {5, 6, 7} for held in kafka.lists("t")))
        operator.edit(brokers={"include": [3, 5, 6]})
        await operator.until("Succeeded")
        assert await recorded(operator) == {f"t-{n}": [1, 2, 3] for n in range(4)}
        await undone(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4

    async def test_a_deletion_leaves_what_was_never_touched(self, kafka):
        """Others carry out a part of the plan: it lies between origin and target, and it is not ours."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        (flying,) = kafka.flying
        for number in range(4):
            if f"t-{number}" != flying:
                kafka.assign("t", number, 4, 5, 3)
        await deleted(operator)
        assert kafka.lists("t") == [[1, 2, 3] if f"t-{n}" == flying else [4, 5, 3] for n in range(4)]

    @pytest.mark.parametrize("end", ["deleted", "edited"])
    async def test_no_reassignment_of_others_is_cancelled(self, kafka, end):
        """It looks like a step of ours, of a partition that was sent nothing."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        (ours,) = kafka.flying
        other = next(n for n in range(4) if f"t-{n}" != ours)
        await kafka.alter_reassignments({TopicPartition("t", other): (4, 1, 2, 3)})
        if end == "deleted":
            await deleted(operator)
        else:
            operator.edit(brokers={"include": [1, 2, 7]})
            await operator.until_true(lambda: (ours, None) in kafka.altered)
        assert (f"t-{other}", None) not in kafka.altered
        assert f"t-{other}" in kafka.flying


class TestRecord:
    async def test_precedes_the_first_order_of_each_partition(self, kafka):
        """On record, and read back, before Kafka is asked for anything; in one record for all that is sent together."""
        operator = OperatorInMemory(kafka)
        alter, elect, missing = kafka.alter_reassignments, kafka.elect_preferred, []

        async def checked(send, orders):
            known = await recorded(operator)
            missing.extend(str(tp) for tp in orders if str(tp) not in known)
            return await send(orders)

        kafka.alter_reassignments = lambda orders: checked(alter, orders)
        kafka.elect_preferred = lambda orders: checked(elect, orders)
        operator.apply(throttle=FAST, brokers=OTHERS)
        await operator.until("Succeeded")
        assert missing == []
        assert await recorded(operator) == {f"t-{n}": [1, 2, 3] for n in range(4)}

    async def test_nothing_is_sent_without_it(self, kafka):
        """If the API server does not take it, the partition waits."""
        operator = OperatorInMemory(kafka)
        put = operator.kube._put

        def refused(name, body):
            if name.startswith("origins") and operator.run is not None and operator.run.started_at is not None:
                raise Transient("ApiServerUnreachable", "no answer")
            return put(name, body)

        operator.kube._put = refused
        operator.apply(throttle=FAST, brokers=OTHERS)
        await operator.until("ApiServerUnreachable")
        assert kafka.altered == []
        operator.kube._put = put
        await operator.until("Succeeded")

    async def test_killed_before_the_order(self, kafka):
        """The record is true still: nothing has happened to the partition."""
        operator = OperatorInMemory(kafka)
        alter = kafka.alter_reassignments

        async def killed(_orders):
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_reassignments = killed
        operator.apply(throttle=FAST, brokers=OTHERS)
        await operator.until_true(lambda: operator.run is not None and operator.run.started)
        kafka.alter_reassignments = alter
        operator.restart()
        await operator.until("Succeeded")
        await undone(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4
