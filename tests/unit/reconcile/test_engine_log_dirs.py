"""Replicas between the log dirs of a broker: planned from live sizes, throttled, and a few at a time."""

import pytest
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.log_dir_runs import MIB, ONE, A, B, C, jbod, only_log_dirs, places, rate_of

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.execution.reassignment_throttle import LOG_DIR_RATE
from kafka_rebalance.model.topology import TopicPartition


class TestEvened:
    async def test_by_bytes(self):
        """600 bytes in the first of three log dirs: 200 in each at the end, with four moves, all of one broker."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("Succeeded")
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}
        assert len(kafka.dir_calls) == 4
        assert kafka.altered == []

    async def test_again(self):
        """There is nothing to do where there is nothing to gain."""
        kafka = jbod()
        kafka.where = {(TopicPartition("t", n), ONE): (A, B, C)[n % 3] for n in range(6)}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("NothingToDo")
        assert kafka.dir_calls == []

    async def test_a_drained_log_dir(self):
        """At the end it holds nothing, and the others are as even as they can be."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, logDirs={"drain": [{"broker": 1, "path": A}]})
        await operator.until("Succeeded")
        assert kafka.bytes_in(1) == {A: 0, B: 300, C: 300}

    async def test_topics_that_are_not_selected_stay(self):
        kafka = jbod(u=[[1]] * 3)
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, topics={"include": ["t"]})
        await operator.until("Succeeded")
        assert {kafka.dir_of(f"u-{n}", 1) for n in range(3)} == {A}
        assert kafka.bytes_in(1) == {A: 300, B: 300, C: 300}

    async def test_at_most_so_many_at_once_on_a_broker(self):
        kafka = jbod()
        kafka.crawling = {ONE}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, execution={"maxPerBroker": {"betweenLogDirs": 2}})
        await operator.until_true(lambda: len(kafka.future) == 2)
        for _ in range(6):
            await operator.round()
        assert len(kafka.future) == 2
        assert operator.status["progress"]["logDirMoves"] == {"total": 4, "completed": 0, "inFlight": 2}
        kafka.copied()
        await operator.until("Succeeded")
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}

    async def test_a_topic_that_is_created_again(self, monkeypatch):
        """In the middle of a round: log dirs are read after the partitions. Replicas of the new topic are not moved."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until_open()
        read = kafka.log_dirs

        async def read_and_create_again(brokers):
            found = await read(brokers)
            kafka.create("t", [[1]] * 6, "id-2")
            return found

        with monkeypatch.context() as patched:
            patched.setattr(kafka, "log_dirs", read_and_create_again)
            for _ in range(3):
                await operator.round()
        assert kafka.states[TopicPartition("t", 0)].topic_id == "t-id-2"
        await operator.until("Succeeded")
        assert kafka.dir_calls == []

    async def test_a_plan_that_is_put_aside_in_the_same_round(self, monkeypatch):
        """Another tool moves v-1 when the leader of v-0 changes. Nothing of that plan may move after that."""
        kafka = jbod((1, 2, 3), v=[[1, 2]] * 4)
        operator = OperatorInMemory(kafka)
        alter = kafka.alter_reassignments

        async def alter_and_move_another(orders):
            answers = await alter(orders)
            kafka.assign("v", next(n for n in range(4) if n not in {tp.partition for tp in orders}), 3, 2)
            monkeypatch.setattr(kafka, "alter_reassignments", alter)
            return answers

        monkeypatch.setattr(kafka, "alter_reassignments", alter_and_move_another)
        operator.apply(
            strategy="PreferredLeaders",
            goals={"logDirs": {"band": "10%"}},
            approval={"driftBudget": 0},
            execution={"parallelLeaderMovements": 1},
        )
        await operator.until_true(lambda: bool(kafka.altered))
        assert (operator.state, kafka.dir_calls) == ("Drifted", [])

    async def test_what_the_status_says(self):
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until("Succeeded")
        plan = operator.status["plan"]
        assert (plan["logDirMoves"], plan["dataBetweenLogDirs"], plan["replicaMoves"]) == (4, 400, 0)
        assert operator.status["progress"]["percent"] == 100
        assert operator.status["progress"]["bytes"] == {"total": 400, "moved": 400}


class TestThrottle:
    async def test_the_rate_is_in_place_before_a_copy_and_restored_after_the_last(self):
        kafka = jbod()
        kafka.crawling = {ONE}
        kafka.values[ONE, LOG_DIR_RATE] = str(100 * MIB)
        operator = OperatorInMemory(kafka)
        seen = []
        begin = kafka._alter_log_dir
        kafka._alter_log_dir = lambda key, path: (seen.append(rate_of(kafka)), begin(key, path))[1]
        only_log_dirs(operator, throttle={"logDirRate": "20Mi"})
        await operator.until_true(lambda: bool(kafka.future))
        assert operator.status["throttle"]["logDirRate"] == 20 * MIB
        kafka.copied()
        await operator.until("Succeeded")
        assert set(seen) == {str(20 * MIB)}
        assert rate_of(kafka) == str(100 * MIB)
        assert operator.engine._rounds.throttle.ledger_empty

    @pytest.mark.parametrize(
        ("throttle", "rate"),
        [
            ({}, 50 * MIB),
            ({"throttle": {"leaderRate": "1Mi"}}, 50 * MIB),
            ({"throttle": {"unlimited": True}}, None),
            ({"throttle": {"logDirRate": "20Mi"}}, 20 * MIB),
        ],
        ids=["the default", "of reassignments", "unlimited", "its own"],
    )
    async def test_the_rate(self, throttle, rate):
        kafka = jbod()
        kafka.crawling = {ONE}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, **throttle)
        await operator.until_true(lambda: bool(kafka.future))
        assert rate_of(kafka) == (None if rate is None else str(rate))
        assert kafka.rates(ONE) == (None, None)

    async def test_no_copy_starts_without_it(self):
        """A broker that does not accept the rate copies nothing between its log dirs."""
        kafka = jbod()
        kafka.refusing = {ONE}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        for _ in range(12):
            await operator.round()
        assert kafka.dir_calls == []
        kafka.refusing = set()
        await operator.until("Succeeded")
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}

    async def test_a_lower_rate_of_the_broker_holds(self):
        """The broker has one rate for its log dirs: a second one cannot be added to it, as for reassignments."""
        kafka = jbod()
        kafka.crawling = {ONE}
        kafka.values[ONE, LOG_DIR_RATE] = "1000"
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, throttle={"logDirRate": "20Mi"})
        await operator.until_true(lambda: bool(kafka.future))
        assert rate_of(kafka) == "1000"

    async def test_copies_of_a_resource_that_has_not_arrived_stay_throttled(self):
        """After a start the resources arrive one by one; the rate stays while the broker copies."""
        kafka = jbod()
        kafka.crawling = {ONE}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        await operator.until_true(lambda: bool(kafka.future))
        bodies, operator.kube.resources = operator.kube.resources, {}
        operator.restart()
        for _ in range(5):
            await operator.round()
        assert rate_of(kafka) == str(50 * MIB)
        operator.kube.resources = bodies
        operator.restart()
        kafka.copied()
        await operator.until("Succeeded")
        assert rate_of(kafka) is None


class TestBesideReassignments:
    def two(self):
        """Broker 1 holds all, in one log dir; 2 holds nothing."""
        return jbod(brokers=(1, 2))

    async def test_new_replicas_are_placed(self):
        """Those that come to broker 2 are created where the plan wants them: nothing is copied there twice."""
        kafka = self.two()
        operator = OperatorInMemory(kafka)
        operator.apply(goals={"logDirs": {}})
        await operator.until("Succeeded")
        assert kafka.bytes_in(2) == {A: 100, B: 100, C: 100}
        assert kafka.bytes_in(1) == {A: 100, B: 100, C: 100}
        assert {broker for _, broker, _ in kafka.dir_calls} == {1}

    async def test_a_placement_that_is_forgotten_is_made_up_for(self):
        """A broker that restarts forgets it: the replica is moved when it is there."""
        kafka = self.two()

        class Forgetful(dict):
            def __setitem__(self, key, value):
                pass

        kafka.kept = Forgetful()
        operator = OperatorInMemory(kafka)
        operator.apply(goals={"logDirs": {}})
        await operator.until("Succeeded")
        assert kafka.bytes_in(2) == {A: 100, B: 100, C: 100}

    async def test_an_undo_leads_to_the_same_log_dirs(self):
        """Also for replicas that had left the broker."""
        kafka = self.two()
        kafka.where = {(TopicPartition("t", n), ONE): C for n in range(6)}
        operator = OperatorInMemory(kafka)
        operator.apply(goals={"logDirs": {}})
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until("Undone")
        assert kafka.lists("t") == [[1]] * 6
        assert places(kafka) == [C] * 6


class TestRefused:
    @pytest.mark.parametrize(
        ("drain", "reason", "said"),
        [
            ([{"broker": 7, "path": A}], "UnknownBroker", "spec.goals.logDirs.drain[0]"),
            (
                [{"broker": 1, "path": "/data/x"}],
                "UnknownLogDir",
                "no log dir /data/x online; it has: /data/a, /data/b",
            ),
            ([{"broker": 1, "path": C}], "UnknownLogDir", "no log dir /data/c online"),
            ([{"broker": 1, "path": A}, {"broker": 1, "path": B}], "LastLogDir", "spec.goals.logDirs.drain[1]"),
        ],
        ids=["broker", "log dir", "offline", "all"],
    )
    async def test_names_the_field(self, drain, reason, said):
        kafka = jbod()
        kafka.offline = {(ONE, C)}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, logDirs={"drain": drain})
        message = await operator.until(reason)
        assert said in message
        assert kafka.dir_calls == []

    async def test_a_broker_with_a_single_log_dir(self):
        """It cannot be drained; without that it is left alone."""
        kafka = jbod()
        kafka.dirs[ONE] = (A,)
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, logDirs={"drain": [{"broker": 1, "path": A}]})
        assert "use spec.brokers.decommission" in await operator.until("LastLogDir")
        operator.edit(goals={"logDirs": {}})
        await operator.until("NothingToDo")

    async def test_what_does_not_fit(self):
        kafka = jbod()
        kafka.usable = {(ONE, A): 10_000, (ONE, B): 150, (ONE, C): 50}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, logDirs={"drain": [{"broker": 1, "path": A}]})
        assert "log dir /data/b of broker 1 has no room" in await operator.until("InsufficientDisk")

    async def test_a_broker_that_does_not_answer(self):
        kafka = jbod(brokers=(1, 2))
        kafka.dirs_denied = None
        answering = kafka.log_dirs

        async def silent(brokers):
            return await answering([b for b in brokers if b == ONE])

        kafka.log_dirs = silent
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator)
        assert "broker 2 does not describe its log dirs: the plan waits" in await operator.until("LogDirsUnknown")


class TestPaused:
    async def test_no_new_move_starts(self):
        """Those in flight finish, the rate is restored then, and nothing starts before the pause is over."""
        kafka = jbod()
        kafka.crawling = {ONE}
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, execution={"maxPerBroker": {"betweenLogDirs": 2}})
        await operator.until_true(lambda: len(kafka.future) == 2)
        operator.edit(execution={"suspend": True, "maxPerBroker": {"betweenLogDirs": 2}})
        await operator.until("Suspended")
        kafka.copied()
        for _ in range(8):
            await operator.round()
        assert kafka.bytes_in(1)[A] == 400
        assert rate_of(kafka) is None
        operator.edit(execution={"suspend": False})
        await operator.until("Succeeded")

    async def test_the_plan_waits_for_approval(self):
        """The hash covers the moves between log dirs."""
        kafka = jbod()
        operator = OperatorInMemory(kafka)
        only_log_dirs(operator, approval={"policy": "Manual"})
        await operator.until("AwaitingApproval")
        assert kafka.dir_calls == []
        operator.edit(approval={"policy": "Manual", "planHash": operator.status["plan"]["hash"]})
        await operator.until("Succeeded")
        assert kafka.bytes_in(1) == {A: 200, B: 200, C: 200}
