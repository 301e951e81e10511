"""A large run is judged off the event loop at first; it makes no difference to the statuses."""

import asyncio
import itertools
import threading
from dataclasses import replace

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.loop_or_thread import IN_THE_LOOP, OFF_THE_LOOP, where
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.log_dir_runs import A, B, C, jbod, only_log_dirs

from kafka_rebalance.execution.alike import AlikeJudge
from kafka_rebalance.execution.partition_status import Direction
from kafka_rebalance.execution.tally import Tally
from kafka_rebalance.kafka.ports import Answers
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act import judges, log_dir_calls
from kafka_rebalance.reconcile.decide import log_dir_decisions
from kafka_rebalance.reconcile.decide.judging import partitions_to_judge
from kafka_rebalance.reconcile.state import record
from kafka_rebalance.reconcile.state.judgement import Judgement


class TestTurningRound:
    @pytest.mark.parametrize(("large", "in_threads"), [(1, True), (1000, False)])
    def test_off_the_loop_if_it_is_large(self, monkeypatch, large, in_threads):
        """A deletion of 200,000 partitions selects the moves of the rollback, and sums up what they copy."""
        threads = set()
        turn = record.loaded_run_of

        def seen(*args, **more):
            if more.get("back"):
                threads.add(threading.current_thread())
            return turn(*args, **more)

        monkeypatch.setattr(record, "loaded_run_of", seen)
        monkeypatch.setattr(judges, "LARGE", large)
        operator = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2]] * 4))
        operator.kafka.slow.add(3)
        operator.assign(*(("t", number, [3, 2]) for number in range(4)), execution={"parallelPartitionCount": 2})
        asyncio.run(operator.until_true(lambda: len(operator.kafka.flying) == 2))
        operator.delete()
        asyncio.run(operator.until_true(lambda: not operator.engine.rebalances))
        assert operator.kafka.lists("t") == [[1, 2]] * 4
        assert threads != set()
        assert (threads - {threading.main_thread()} != set()) is in_threads


class TestFirstJudgement:
    @pytest.mark.parametrize(("large", "in_threads"), [(1, True), (1000, False)])
    def test_off_the_loop_if_it_is_large(self, monkeypatch, large, in_threads):
        """Seconds for 200,000 partitions: meanwhile the lease is renewed, and other clusters go on."""
        threads = set()
        judge = AlikeJudge.status_of

        def seen(*args):
            threads.add(threading.current_thread())
            return judge(*args)

        monkeypatch.setattr(AlikeJudge, "status_of", seen)
        monkeypatch.setattr(judges, "MANY", large)
        operator = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2]] * 4))
        operator.assign(*(("t", number, [3, 2]) for number in range(4)))
        asyncio.run(operator.until("Rebalancing"))
        assert (threads - {threading.main_thread()} != set()) is in_threads
        asyncio.run(operator.until("Succeeded"))
        assert operator.kafka.lists("t") == [[3, 2]] * 4


class Flipping(KafkaInMemory):
    """Shows another leader of each partition in each reading of some topics."""

    async def describe_partitions(self, topics=None, listed=None):
        found = await super().describe_partitions(topics, listed)
        if topics is None:
            return found
        self.led_by = {1: 2, 2: 1}[getattr(self, "led_by", 1)]
        shown = {tp: replace(state, leader=BrokerId(self.led_by)) for tp, state in found.items()}
        return Answers(shown, found.errors)


class TestSecondLooks:
    async def test_off_the_loop_if_many_partitions_read_otherwise(self, monkeypatch):
        """A server may show all of them otherwise in each reading of a round."""
        in_loop, elsewhere = [], []
        again = judges.judge_again

        def seen(before, inputs, observation, changes, now):
            concerned = partitions_to_judge(before, inputs, changes)
            count = len(inputs.run.moves) if concerned is None else len(concerned)
            here = threading.current_thread() is threading.main_thread()
            (in_loop if here else elsewhere).append(count)
            return again(before, inputs, observation, changes, now)

        monkeypatch.setattr(judges, "judge_again", seen)
        monkeypatch.setattr(judges, "MANY", 4)
        operator = OperatorInMemory(Flipping([1, 2, 3], t=[[1, 2]] * 4))
        operator.assign(*(("t", number, [2, 1]) for number in range(4)))
        await operator.until("Rebalancing")
        elsewhere.clear()
        await operator.round()
        assert len(elsewhere) > 1
        assert max(in_loop) < 4


class Edited(OperatorInMemory):
    """``meanwhile`` is called with the direction after each judgement in a thread: an edit has come."""

    def __init__(self, kafka, monkeypatch, meanwhile):
        super().__init__(kafka)
        in_thread, again, tally_of = judges.off_the_loop, judges.judge_again, Tally.of
        self.judged, self.tallied = [], []

        async def edited(work, *given):
            found = await in_thread(work, *given)
            if isinstance(found, Judgement):
                meanwhile(self, found.direction)
            return found

        def seen(before, inputs, observation, changes, now):
            concerned = partitions_to_judge(before, inputs, changes)
            self.judged.append((where(), len(inputs.run.moves) if concerned is None else len(concerned)))
            return again(before, inputs, observation, changes, now)

        def tallied(*given):
            self.tallied.append(where())
            return tally_of(*given)

        monkeypatch.setattr(judges, "MANY", 4)
        monkeypatch.setattr(judges, "off_the_loop", edited)
        monkeypatch.setattr(judges, "judge_again", seen)
        monkeypatch.setattr(Tally, "of", tallied)

    def judged_in_loop(self):
        return max((count for place, count in self.judged if place == IN_THE_LOOP), default=0)


class TestEditsMeanwhile:
    """Edits may come several times in a round, each while a thread judges the run."""

    async def test_of_how_many_replicas_are_copied_at_a_time(self, monkeypatch):
        """They count from the next round on, so that all is judged once in each round."""
        counts = itertools.count(2)

        def edit(operator, _direction):
            operator.edit(execution={"parallelReplicaCount": next(counts)})

        kafka = KafkaInMemory([1, 2, 3], t=[[1, 2]] * 4)
        kafka.slow = {3}
        operator = Edited(kafka, monkeypatch, edit)
        operator.assign(*(("t", number, [3, 2]) for number in range(4)))
        await operator.until_true(lambda: len(kafka.flying) == 4)
        operator.judged.clear()
        operator.tallied.clear()
        for _ in range(5):
            edit(operator, Direction.FORWARD)
            await operator.round()
        assert operator.judged_in_loop() < 4
        assert operator.judged.count((OFF_THE_LOOP, 4)) == 5
        assert operator.tallied == [OFF_THE_LOOP] * 5

    async def test_of_what_is_planned(self, monkeypatch):
        """The plan is put aside in the same round: the run is judged again for that, in a thread."""
        directions = []

        def edit(operator, direction):
            directions.append(direction)
            if operator.kafka.flying and direction is Direction.FORWARD:
                operator.edit(topics={"exclude": ["none"]})

        kafka = KafkaInMemory([1, 2, 3], t=[[1, 2]] * 4)
        kafka.slow = {3}
        operator = Edited(kafka, monkeypatch, edit)
        operator.apply(brokers={"decommission": [1]}, throttle={"unlimited": True})
        await operator.until_true(lambda: len(kafka.flying) == 4)
        operator.edit(execution={"parallelReplicaCount": 2})
        await operator.round()
        assert directions[-2:] == [Direction.FORWARD, Direction.REVERT]
        assert operator.judged_in_loop() < 4


class TestLogDirs:
    @pytest.mark.parametrize(("many", "in_threads"), [(1, True), (1000, False)])
    def test_off_the_loop_if_many_replicas_move(self, monkeypatch, many, in_threads):
        """Of 150,000 replicas, which a server may claim, each look takes half a second."""
        judging, choosing = set(), set()
        judge, choose = log_dir_decisions.judge_replica, log_dir_calls.orders_for_log_dirs

        def judged(*args, **more):
            judging.add(threading.current_thread())
            return judge(*args, **more)

        def chosen(*args):
            choosing.add(threading.current_thread())
            return choose(*args)

        monkeypatch.setattr(log_dir_decisions, "judge_replica", judged)
        monkeypatch.setattr(log_dir_calls, "orders_for_log_dirs", chosen)
        monkeypatch.setattr(judges, "_MANY_IN_DIRS", many)
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        asyncio.run(operator.until("Succeeded"))
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}
        for threads in (judging, choosing):
            assert (threading.main_thread() not in threads) is in_threads
