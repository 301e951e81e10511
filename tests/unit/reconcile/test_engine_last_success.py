"""An undo of the last success, and of runs that an earlier version recorded."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.origin_runs import FAST, ONE, OTHERS, by_an_earlier_version, deleted, undone

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.kube.store import OriginStore, RunStore


@pytest.fixture
def kafka():
    return KafkaInMemory(range(1, 8), t=[[1, 2, 3]] * 4)


class TestLastSuccess:
    """A new plan that sends nothing leaves what the last success has sent undoable."""

    @pytest.fixture
    async def succeeded(self, kafka):
        """It has moved everything to brokers 4 to 6."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS)
        await operator.until("Succeeded")
        return operator

    @staticmethod
    async def edited(operator, how):
        """The spec that is asked for in the end is the one that has succeeded, or one that needs no move."""
        if how == "empty":
            operator.edit(brokers={"include": [4, 5, 6], "decommission": [7]})
            await operator.until("NothingToDo")
        elif how == "refused":
            operator.edit(brokers={"include": [98, 99]})
            await operator.until("UnknownBroker")
            operator.edit(brokers=OTHERS)
            await operator.until("Succeeded", "NothingToDo")
        else:
            operator.edit(brokers={"include": [1, 2, 7]}, approval={"policy": "Manual"})
            await operator.until("AwaitingApproval")
            if how == "waits twice":
                operator.edit(brokers={"include": [2, 3, 7]})
                await operator.until("AwaitingApproval")
            operator.edit(brokers=OTHERS)
            await operator.until("NothingToDo")

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("how", ["empty", "refused", "waits", "waits twice"])
    async def test_an_edit_that_sends_nothing(self, succeeded, how, restart):
        await self.edited(succeeded, how)
        if restart:
            succeeded.restart()
            await succeeded.round()
        await undone(succeeded)
        assert succeeded.state == "Undone"
        assert succeeded.kafka.lists("t") == [[1, 2, 3]] * 4
        for _ in range(3):
            await succeeded.round()
        assert succeeded.state == "Undone"

    async def test_a_run_that_starts_replaces_it(self, succeeded):
        """An undo leads to before the last run that has sent something, and older records are deleted."""
        succeeded.edit(brokers={"include": [5, 6, 7]})
        await succeeded.until_true(lambda: all(set(held) == {5, 6, 7} for held in succeeded.kafka.lists("t")))
        await succeeded.until_closed()
        assert succeeded.run.last_success is None
        kinds = {name.split("-")[0] for name in succeeded.kube.config_maps} - {"ledger"}
        assert sorted(kinds) == ["origins", "plan", "run"]
        await undone(succeeded)
        assert [sorted(held) for held in succeeded.kafka.lists("t")] == [[4, 5, 6]] * 4

    @pytest.mark.parametrize("restart", [False, True])
    async def test_a_run_whose_steps_are_held_back_replaces_nothing(self, succeeded, restart):
        """Its start is on record before the throttle, which the brokers refuse: no step is sent."""
        kafka, limited = succeeded.kafka, {"leaderRate": "1Mi", "followerRate": "1Mi"}
        kafka.refusing, kafka.refusal = set(kafka.brokers), "POLICY_VIOLATION"
        sent = len(kafka.altered)
        succeeded.edit(brokers={"include": [1, 2, 7]}, throttle=limited)
        await succeeded.until_true(lambda: succeeded.run.open and succeeded.run.started_at is not None)
        for _ in range(3):
            await succeeded.round()
        assert len(kafka.altered) == sent
        succeeded.edit(brokers=OTHERS)
        if restart:
            succeeded.restart()
        kafka.refusing = set()
        await succeeded.until("NothingToDo")
        await undone(succeeded)
        assert kafka.lists("t") == [[1, 2, 3]] * 4

    async def test_a_run_whose_steps_kafka_refuses_replaces_nothing(self, succeeded):
        kafka, alter = succeeded.kafka, succeeded.kafka.alter_reassignments

        async def refuse(orders):
            return dict.fromkeys(orders, AlterCode.NOT_AUTHORIZED)

        kafka.alter_reassignments = refuse
        succeeded.edit(brokers={"include": [1, 2, 7]})
        await succeeded.until("KafkaAuthorizationFailed")
        kafka.alter_reassignments = alter
        succeeded.edit(brokers=OTHERS)
        await succeeded.until("NothingToDo")
        await undone(succeeded)
        assert kafka.lists("t") == [[1, 2, 3]] * 4

    @pytest.mark.parametrize("left", range(12))
    async def test_killed_at_any_write(self, succeeded, left):
        """Before the new run has started, an undo is possible after each write to the API server."""
        kube, put, delete = succeeded.kube, succeeded.kube._put, succeeded.kube.delete_config_map
        writes = []

        def counted(name):
            writes.append(name)
            if len(writes) > left:
                raise Transient("ApiServerUnreachable", "killed")

        def put_or_die(name, body):
            counted(name)
            return put(name, body)

        async def delete_or_die(name):
            counted(name)
            await delete(name)

        kube._put, kube.delete_config_map = put_or_die, delete_or_die
        succeeded.edit(brokers={"include": [1, 2, 7]}, approval={"policy": "Manual"})
        for _ in range(4):
            await succeeded.round()
        kube._put, kube.delete_config_map = put, delete
        succeeded.restart()
        succeeded.edit(brokers=OTHERS)
        await succeeded.until("Succeeded", "NothingToDo")
        await undone(succeeded)
        assert succeeded.kafka.lists("t") == [[1, 2, 3]] * 4

    async def test_the_resource_is_deleted_meanwhile(self, succeeded):
        """Completed moves stay, and their origins are kept for ``kafka-rebalance undo --print --uid``."""
        await self.edited(succeeded, "waits")
        before = succeeded.run.last_success
        await deleted(succeeded)
        assert all(set(held) == {4, 5, 6} for held in succeeded.kafka.lists("t"))
        kept = await RunStore(succeeded.kube).load("u-1")
        assert kept.last_success == before
        assert len(await OriginStore(succeeded.kube).load("u-1", before.run_id)) == 4

    async def test_a_plan_with_the_same_hash(self, kafka):
        """The stored plan of the success stays complete: here the hash is that of a plan without any move."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        operator.edit(execution={**ONE, "suspend": True})
        kafka.arrive()
        await operator.until_true(lambda: operator.state == "Suspended" and {*map(len, kafka.lists("t"))} == {3})
        operator.write(*(("t", n, held) for n, held in enumerate(kafka.lists("t"))))
        written = operator.kube.user_config_maps["kafka", "lists"]
        written["same"] = written["k"]
        for key in ("k", "same"):
            reference = {"configMapRef": {"name": "lists", "key": key}}
            operator.edit(brokers={}, execution=ONE, strategy="Assignment", assignment=reference)
            await operator.until_true(lambda: operator.run.planning_hash == operator.rebalance.desired.planning_hash)
            await operator.until_closed()
        assert operator.run.plan_hash == operator.run.last_success.plan_hash
        assert kafka.lists("t") != [[1, 2, 3]] * 4
        await undone(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4

    @pytest.mark.parametrize("restart", [False, True])
    async def test_a_plan_with_the_same_hash_after_others_have_moved_a_partition(self, kafka, restart):
        """The stored plan would contain the list of the others, which an undo would then take for its own."""
        operator = OperatorInMemory(kafka)
        base = {"throttle": FAST, "execution": ONE, "strategy": "ForcedMovesOnly"}
        operator.apply(**base, brokers={"decommission": [1]})
        await operator.until_true(lambda: set(kafka.lists("t")[0]) != {1, 2, 3} and len(kafka.lists("t")[0]) == 3)
        moved = [n for n, held in enumerate(kafka.lists("t")) if held != [1, 2, 3]]
        operator.edit(brokers={"decommission": []})
        await operator.until_true(lambda: operator.state == "Succeeded" and not operator.run.open)
        success, theirs = operator.run, [next(b for b in (5, 6, 7) if b not in kafka.lists("t")[0]), 2, 3]
        kafka.assign("t", 0, *theirs)
        operator.edit(topics={"exclude": ["no-1"]})
        await operator.until_true(lambda: operator.run.run_id != success.run_id and not operator.run.open)
        assert (operator.run.plan_hash, operator.run.last_success) == (success.plan_hash, success)
        if restart:
            operator.restart()
            await operator.round()
        await undone(operator)
        assert moved[0] == 0
        assert kafka.lists("t") == [theirs, *[[1, 2, 3]] * 3]


class TestSupersededUndo:
    """An edit ends an undo and its request, because the plan of the new run may be the plan that was undone."""

    @pytest.fixture
    async def cut(self, monkeypatch):
        """Everything is moved back, and the first removal of the request fails.

        Returns the operator and whether it failed.
        """
        operator, failed = OperatorInMemory(KafkaInMemory((1, 2), t=[[1]] * 4)), []
        operator.apply(execution=ONE)
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
        await operator.until_true(lambda: operator.kafka.lists("t") == [[1]] * 4)
        assert operator.run.undo
        assert operator.run.open
        annotate = operator.kube.annotate

        async def fails_once(*asked):
            if not failed:
                failed.append(asked)
                raise Transient("ApiServerUnreachable", "no answer")
            return await annotate(*asked)

        monkeypatch.setattr(operator.kube, "annotate", fails_once)
        return operator, failed

    @pytest.mark.parametrize("killed", [False, True])
    async def test_the_new_run_is_not_undone(self, cut, killed):
        """The watch has not delivered the removal of the request yet."""
        operator, failed = cut
        superseded = operator.run.plan_hash
        operator.edit(topics={"include": ["t"]})
        await operator.until_true(lambda: bool(failed))
        if killed:
            operator.restart()
        await operator.until("Succeeded")
        assert operator.run.plan_hash == superseded
        for _ in range(10):
            await operator.round()
        assert operator.state == "Succeeded"
        assert sorted(operator.kafka.lists("t")) == [[1], [1], [2], [2]]


class TestRunsOfAnEarlierVersion:
    """All origins are on record, as of when it planned."""

    async def test_one_that_has_sent_nothing(self, kafka):
        """They say nothing: the first step of each partition records what it is then."""
        operator = OperatorInMemory(kafka)
        operator.apply(approval={"policy": "Manual"}, throttle=FAST, brokers=OTHERS)
        await operator.until("AwaitingApproval")
        await by_an_earlier_version(operator)
        kafka.assign("t", 3, 3, 2, 1)
        operator.edit(approval={"policy": "Automatic"})
        await operator.until("Succeeded")
        await undone(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 3 + [[3, 2, 1]]

    @pytest.mark.parametrize("end", [undone, deleted])
    async def test_one_that_is_under_way(self, kafka, end):
        """What it had sent is not known, so all of them count."""
        operator = OperatorInMemory(kafka)
        operator.apply(throttle=FAST, brokers=OTHERS, execution=ONE)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        await by_an_earlier_version(operator)
        kafka.arrive()
        if end is undone:
            await operator.until("Succeeded")
        else:
            await operator.until_true(lambda: sum(set(held) == {4, 5, 6} for held in kafka.lists("t")) == 2)
        await end(operator)
        assert kafka.lists("t") == [[1, 2, 3]] * 4
