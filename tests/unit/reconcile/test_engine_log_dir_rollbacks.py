"""Rollback and restarts of a run that moves replicas between the log dirs of a broker."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.log_dir_runs import ONE, A, B, C, half_way, jbod, only_log_dirs, places, rate_of

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.execution.reassignment_throttle import LOG_DIR_RATE
from kafka_rebalance.kube.store import OriginStore
from kafka_rebalance.model.topology import BrokerId, TopicPartition

TWO = BrokerId(2)


class TestRollback:
    async def test_a_deletion_in_the_middle(self):
        """What is in flight is cancelled, what has arrived goes back, and the rate is restored."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        await half_way(kafka, operator)
        operator.delete()
        for _ in range(5):
            await operator.round()
        kafka.copied()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert places(kafka) == [A] * 6
        assert kafka.future == {}
        assert rate_of(kafka) is None

    async def test_deletion_policy_revert(self):
        """Only what is in flight goes back."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        await half_way(kafka, operator, deletionPolicy="Revert")
        operator.delete()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert kafka.future == {}
        assert kafka.bytes_in(1)[A] == 400
        assert rate_of(kafka) is None

    async def test_an_undo(self):
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert places(kafka) == [A] * 6
        assert rate_of(kafka) is None

    async def test_what_others_moved_since_is_theirs(self):
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, topics={"include": ["t"]})
        await operator.until("Succeeded")
        moved = next(n for n in range(6) if kafka.dir_of(f"t-{n}", 1) == B)
        kafka.dirs[ONE] = (A, B, C, "/data/d")
        kafka.where[TopicPartition("t", moved), ONE] = "/data/d"
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("RolledBackPartially")
        assert kafka.dir_of(f"t-{moved}", 1) == "/data/d"
        assert places(kafka).count(A) == 5

    @pytest.mark.parametrize("restart", [False, True])
    async def test_the_order_that_others_give_the_replicas_is_theirs(self, restart):
        """The run has sent nothing that changes a list. Its moves between log dirs are rolled back all the same."""
        kafka = KafkaInMemory((1, 2), t=[[1, 2]] * 6)
        kafka.dirs = dict.fromkeys(kafka.brokers, (A, B, C))
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("Succeeded")
        for number in range(6):
            kafka.assign("t", number, 2, 1)
        if restart:
            operator.restart()
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert kafka.lists("t") == [[2, 1]] * 6
        assert [kafka.dir_of(f"t-{n}", b) for n in range(6) for b in (1, 2)] == [A] * 12

    async def test_a_rollback_beyond_max_data(self):
        """The bytes between log dirs count."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        await half_way(kafka, operator, rollback={"maxData": 150})
        operator.delete()
        await operator.until("RollbackTooLarge")
        await operator.until_true(lambda: not kafka.future)
        assert kafka.bytes_in(1)[A] == 400

    async def test_an_edit_in_the_middle(self):
        """The plan is made anew; a deletion leads to before both plans."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        await half_way(kafka, operator)
        operator.edit(goals={"logDirs": {"band": "10%", "drain": [{"broker": 1, "path": B}]}})
        await operator.until_true(lambda: not kafka.future)
        await operator.until_true(lambda: bool(kafka.future))
        kafka.copied()
        await operator.until_true(lambda: kafka.bytes_in(1)[B] == 0)
        operator.delete()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert places(kafka) == [A] * 6

    async def test_an_edit_that_empties_the_broker(self):
        """Copies between log dirs are cancelled, then the replicas leave. They return to the log dir that they left.

        Kafka chooses the log dir of a replica that the first plan did not move.
        """
        kafka = jbod((1, 2))
        operator = OperatorInMemory(kafka)
        await half_way(kafka, operator)
        moved = [n for n, path in enumerate(places(kafka)) if path != A] + [tp.partition for tp, _ in kafka.future]
        operator.edit(strategy="MinimalMovement", brokers={"decommission": [1]})
        await operator.until_true(lambda: kafka.lists("t") == [[2]] * 6)
        kafka.crawling = set()
        kafka.dirs[ONE] = (C, A, B)  # new replicas are in the first one
        operator.delete()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert [places(kafka)[n] for n in moved] == [A] * 4


class TestLateCalls:
    """A broker that hung carries out what it was sent after the call was given up."""

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("policy", ["Rollback", "Revert"])
    async def test_a_deletion_waits_for_them(self, policy, restart):
        kafka = jbod()
        kafka.crawling = {ONE}
        operator = OperatorInMemory(kafka)
        answer, late = kafka.alter_log_dirs, []

        async def hang(orders):
            late.append(orders)
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_log_dirs = hang
        only_log_dirs(operator, deletionPolicy=policy)
        await operator.until_true(lambda: bool(late))
        operator.delete()
        if restart:
            operator.restart()
        kafka.alter_log_dirs = answer
        for _ in range(5):
            await operator.round()
        for orders in late:
            await answer(orders)
        assert kafka.future
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert (kafka.future, places(kafka)) == ({}, [A] * 6)
        assert rate_of(kafka) is None


class TestDeadBrokers:
    """The end of a deletion or an undo does not wait for them longer than for a restart."""

    @pytest.fixture
    async def copying(self):
        """Brokers 1 and 2 each copy between their log dirs."""
        kafka = KafkaInMemory((1, 2), t=[[1]] * 6, u=[[2]] * 6)
        kafka.dirs, kafka.crawling = dict.fromkeys(kafka.brokers, (A, B, C)), {ONE, TWO}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until_true(lambda: {broker for _, broker in kafka.future} == {ONE, TWO})
        return operator

    @staticmethod
    def die(kafka):
        dead = kafka.brokers.pop(TWO)
        kafka.silent.add(TWO)
        return dead

    @staticmethod
    async def minutes(operator):
        for _ in range(20):
            operator.clock.at += timedelta(seconds=10)
            await operator.round()

    @pytest.mark.parametrize("policy", ["Rollback", "Revert"])
    async def test_a_deletion(self, copying, policy):
        """The copy of the dead broker goes on when it is back, and its rate is restored when the copy is there."""
        kafka = copying.kafka
        copying.edit(deletionPolicy=policy)
        dead = self.die(kafka)
        copying.delete()
        await self.minutes(copying)
        assert not copying.engine.rebalances
        (end, _) = copying.kube.events[-1]
        assert end == ("RolledBackPartially" if policy == "Rollback" else "Reverted")
        assert {broker for _, broker in kafka.future} == {TWO}
        assert rate_of(kafka) is None
        kafka.brokers[TWO], kafka.silent = dead, set()
        await self.minutes(copying)
        assert (TWO, LOG_DIR_RATE) in kafka.values
        kafka.copied()
        await self.minutes(copying)
        assert (TWO, LOG_DIR_RATE) not in kafka.values

    async def test_one_that_only_restarts_is_waited_for(self, copying):
        dead = self.die(copying.kafka)
        copying.delete()
        for _ in range(30):
            await copying.round()
        assert copying.engine.rebalances
        copying.kafka.brokers[TWO], copying.kafka.silent = dead, set()
        await copying.until_true(lambda: not copying.engine.rebalances)
        assert copying.kafka.future == {}

    async def test_an_undo(self, copying):
        kafka = copying.kafka
        kafka.copied()
        await copying.until_true(lambda: copying.state == "Succeeded" or kafka.copied())
        self.die(kafka)
        copying.order(UNDO_ANNOTATION, copying.status["plan"]["hash"])
        await self.minutes(copying)
        assert copying.state == "RolledBackPartially"
        assert places(kafka) == [A] * 6

    async def test_a_new_plan(self, copying):
        """It is made without the dead broker."""
        self.die(copying.kafka)
        copying.edit(goals={"logDirs": {"band": "20%"}}, topics={"include": ["t"]})
        await self.minutes(copying)
        assert copying.run.planning_hash == copying.rebalance.desired.planning_hash


def two_brokers():
    """Each partition has a replica on both, in the first log dir."""
    kafka = KafkaInMemory((1, 2), size=100, t=[[1, 2]] * 6)
    kafka.dirs = dict.fromkeys(kafka.brokers, (A, B, C))
    return kafka


class TestMovedByOthersBeforehand:
    """Replicas that others have moved to the planned log dirs before the run requested it are not moved back."""

    @staticmethod
    async def moved(operator):
        """Moves the replicas on broker 2, between the plan and its approval. Returns their log dirs."""
        only_log_dirs(operator, approval={"policy": "Manual"})
        await operator.until("AwaitingApproval")
        theirs = {m.key: m.after for m in operator.rebalance.record.loaded_run.log_dirs if m.broker == TWO}
        operator.kafka.where.update(theirs)
        operator.edit(approval={"policy": "Manual", "planHash": operator.status["plan"]["hash"]})
        return theirs

    @pytest.mark.parametrize("restart", [False, True])
    async def test_an_undo(self, restart):
        kafka = two_brokers()
        operator = OperatorInMemory(kafka)
        theirs = await self.moved(operator)
        await operator.until("Succeeded")
        if restart:
            operator.restart()
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert places(kafka) == [A] * 6
        assert {key: kafka.where[key] for key in theirs} == theirs

    async def test_a_deletion_in_the_middle(self):
        kafka = two_brokers()
        operator = OperatorInMemory(kafka)
        theirs = await self.moved(operator)
        kafka.crawling = {ONE}
        await operator.until_true(lambda: bool(kafka.future))
        operator.delete()
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert places(kafka) == [A] * 6
        assert {key: kafka.where[key] for key in theirs} == theirs

    async def test_of_a_record_without_log_dirs(self):
        """An earlier version has written the record. The moves of the plan are undone, as in that version."""
        kafka = two_brokers()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("Succeeded")
        run, origins = operator.run, OriginStore(operator.kube)
        older = [replace(row, log_dirs=None) for row in (await origins.load("u-1", run.run_id)).values()]
        await origins.replace("u-1", run.run_id, older)
        operator.restart()
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert {kafka.dir_of(f"t-{n}", b) for n in range(6) for b in (1, 2)} == {A}

    async def test_between_two_plans(self):
        """A rollback of both restores the log dir that others had chosen in between."""
        kafka = two_brokers()
        operator = OperatorInMemory(kafka)
        theirs = await self.moved(operator)
        kafka.crawling = {ONE}
        await operator.until_true(lambda: bool(kafka.future))
        kafka.crawling = set()
        kafka.copied()
        drained = [{"broker": 2, "path": path} for path in (B, C)]
        operator.edit(goals={"logDirs": {"band": "10%", "drain": drained}}, approval={"policy": "Automatic"})
        await operator.until("Superseded", "Rebalancing", "Planning")
        await operator.until("Succeeded")
        assert {kafka.dir_of(f"t-{n}", 2) for n in range(6)} == {A}
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert {key: kafka.where[key] for key in theirs} == theirs


class TestOrigins:
    async def test_nothing_is_sent_without_a_record(self):
        """What a rollback does not know of would stay where it is."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        put = operator.kube._put

        def refused(name, body):
            if name.startswith("origins") and operator.run is not None and operator.run.started_at is not None:
                raise Transient("ApiServerUnreachable", "no answer")
            return put(name, body)

        operator.kube._put = refused
        only_log_dirs(operator)
        await operator.until("ApiServerUnreachable")
        assert kafka.dir_calls == []
        operator.kube._put = put
        await operator.until("Succeeded")
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}

    async def test_a_move_that_was_chosen_before_a_deletion_is_not_begun(self):
        """The deletion arrives while the origins are recorded."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        put = operator.kube._put

        def deleted_meanwhile(name, body):
            if name.startswith("origins") and operator.run is not None and operator.run.started_at is not None:
                operator.kube._put = put
                operator.delete()
            return put(name, body)

        operator.kube._put = deleted_meanwhile
        only_log_dirs(operator)
        await operator.until_true(lambda: not operator.engine.rebalances)
        assert kafka.dir_calls == []


class TestRestarts:
    """All state is in Kafka and in the stored plan."""

    @pytest.mark.parametrize("rounds", range(2, 12))
    async def test_after_any_round(self, rounds):
        kafka = jbod()
        kafka.crawling = {ONE}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, execution={"maxPerBroker": {"betweenLogDirs": 2}})
        for number in range(100):
            await operator.round()
            assert len(kafka.future) <= 2
            if number % 4 == 3:
                kafka.copied()
                kafka.crawling = {ONE}
            if number == rounds:
                operator.restart()
            if operator.state == "Succeeded":
                break
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}
        assert len(kafka.dir_calls) == 4
        assert rate_of(kafka) is None
        assert operator.state == "Succeeded"

    @pytest.mark.parametrize("executed", [True, False], ids=["after", "before"])
    @pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
    @pytest.mark.parametrize("call", range(2))
    async def test_killed_at_a_call(self, call, back, executed):
        """The reply is lost, whether or not the broker has carried it out: the next operator reads what it did."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        answer, calls = kafka.alter_log_dirs, []

        async def dying(orders):
            calls.append(orders)
            if len(calls) - 1 != call + 2 * back:
                return await answer(orders)
            if executed:
                await answer(orders)
            operator.restart()
            raise Transient("KafkaUnreachable", "no answer")

        kafka.alter_log_dirs = dying
        only_log_dirs(operator, execution={"maxPerBroker": {"betweenLogDirs": 2}})
        await operator.until("Succeeded")
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert places(kafka) == [A] * 6
        assert len(calls) >= 4 + (not executed)
        assert rate_of(kafka) is None
