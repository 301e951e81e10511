"""Copies between log dirs that others have started, and moves that Kafka has refused: they are not the run's."""

import pytest
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.log_dir_runs import ONE, A, C, jbod, only_log_dirs, places, rate_of
from tests.unit.reconcile.origin_runs import deleted, undone

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import LogDirCode
from kafka_rebalance.kube.store import OriginStore
from kafka_rebalance.model.topology import TopicPartition


def refuse(kafka, code=LogDirCode.NOT_AUTHORIZED, lost=0):
    """Refuse what is asked for; the first ``lost`` calls get no answer. Returns the calls, and what permits them."""
    alter, asked = kafka.alter_log_dirs, {}

    async def refused(orders):
        nonlocal lost
        asked.update(orders)
        if lost:
            lost -= 1
            raise Transient("KafkaUnreachable", "no answer")
        return dict.fromkeys(orders, code)

    def permit():
        kafka.alter_log_dirs = alter

    kafka.alter_log_dirs = refused
    return asked, permit


class TestRefused:
    @pytest.mark.parametrize("code", [LogDirCode.NOT_AUTHORIZED, LogDirCode.LOG_DIR_OFFLINE])
    @pytest.mark.parametrize("restarts", [False, True])
    @pytest.mark.parametrize("lost", [0, 1])
    async def test_what_others_move_is_theirs(self, code, restarts, lost):
        kafka = jbod()
        asked, permit = refuse(kafka, code, lost)
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        for _ in range(60 if lost else 8):
            await operator.round()
        if restarts:
            operator.restart()
        assert asked
        for key, path in asked.items():
            kafka.where[key] = path
        moved = places(kafka)
        permit()
        await deleted(operator)
        assert moved != [A] * 6
        assert places(kafka) == moved
        assert kafka.dir_calls == []

    async def test_the_last_success_can_be_undone(self):
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("Succeeded")
        _, permit = refuse(kafka)
        operator.edit(goals={"logDirs": {"band": "10%", "drain": [{"broker": 1, "path": C}]}})
        for _ in range(8):
            await operator.round()
        assert operator.state == "KafkaAuthorizationFailed"
        operator.edit(goals={"logDirs": {"band": "20%"}})
        await operator.until("Succeeded", "NothingToDo")
        permit()
        await undone(operator)
        assert places(kafka) == [A] * 6

    async def test_what_was_moved_before_stays_on_record(self):
        """Of a partition that the run has moved on one broker, the broker refuses nothing but the later move."""
        kafka = jbod()
        alter, counts = kafka.alter_log_dirs, []

        async def all_but_the_first(orders):
            counts.append(len(orders))
            first = dict(list(orders.items())[:1]) if len(counts) == 1 else {}
            return dict.fromkeys(orders, LogDirCode.LOG_DIR_OFFLINE) | await alter(first)

        kafka.alter_log_dirs = all_but_the_first
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        for _ in range(8):
            await operator.round()
        assert counts[0] > 1
        ((tp, broker, _),) = kafka.dir_calls
        (origin,) = (await OriginStore(operator.kube).load("u-1", operator.run.run_id)).values()
        assert (str(origin.tp), origin.log_dirs) == (tp, ((broker, A),))
        kafka.alter_log_dirs = alter
        await deleted(operator)
        assert places(kafka) == [A] * 6


class TestCopiesOfOthers:
    async def test_of_a_replica_that_the_run_has_never_asked_for(self):
        """The run copies one replica at a time; others copy another one where the plan wants it."""
        kafka = jbod()
        kafka.crawling = {ONE}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, execution={"maxPerBroker": {"betweenLogDirs": 1}}, deletionPolicy="Revert")
        await operator.until_true(lambda: len(kafka.future) == 1)
        (ours,) = kafka.future
        log_dirs = operator.rebalance.record.loaded_run.plan.log_dirs
        theirs = next(move for move in log_dirs if move.key != ours)
        await kafka.alter_log_dirs({theirs.key: theirs.after})
        for _ in range(6):
            await operator.round()
        assert operator.rebalance.assessment.log_dirs.by_replica[theirs.key].reason == "ForeignReassignment"
        operator.delete()
        for _ in range(15):
            await operator.round()
        assert kafka.future == {theirs.key: theirs.after}
        kafka.copied()  # until then the rate stays, because copies are in flight on the broker
        await operator.until_true(lambda: not operator.kube.resources)
        assert [kafka.where[theirs.key], rate_of(kafka)] == [theirs.after, None]
        assert kafka.bytes_in(1)[A] == 500

    @pytest.mark.parametrize("way", ["there", "back"])
    async def test_while_the_moves_of_the_run_are_refused(self, way):
        """The run neither cancels the copy nor takes it back when it is deleted."""
        kafka = jbod()
        asked, permit = refuse(kafka)
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("KafkaAuthorizationFailed")
        permit()
        key, path = (TopicPartition("t", 0), ONE), asked[TopicPartition("t", 0), ONE]
        if way == "back":
            kafka.where[key], path = path, A
        kafka.crawling = {ONE}
        kafka.future[key] = path
        calls = len(kafka.dir_calls)
        operator.edit(suspend=True)
        for _ in range(6):
            await operator.round()
        await deleted(operator)
        assert len(kafka.dir_calls) == calls
        assert kafka.future == {key: path}
        kafka.copied()
        await operator.until_true(lambda: rate_of(kafka) is None)
        assert kafka.dir_of("t-0", 1) == path

    async def test_of_others_are_no_reason_for_a_record(self):
        kafka = jbod()
        refuse(kafka)
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("KafkaAuthorizationFailed")
        kafka.crawling = {ONE}
        kafka.future = {(TopicPartition("t", n), ONE): C for n in range(6)}
        for _ in range(40):
            await operator.round()
        assert await OriginStore(operator.kube).load("u-1", operator.run.run_id) == {}
