"""A rebalance from a file without Kubernetes: to its end, to a rest point, back, and on after it was ended at once."""

import asyncio

import pytest
from tests.unit.app.local_terminal import BEFORE, KAFKA, ONE_AT_A_TIME

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.app.local_run import End
from kafka_rebalance.app.system_clock import SystemClock
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.reassignment_throttle import REPLICATION_RATES
from kafka_rebalance.kube.change_requests import ChangeRequest, ChangeRequests
from kafka_rebalance.kube.directory_client import DirectoryClient
from kafka_rebalance.kube.directory_objects import GivenObjects
from kafka_rebalance.kube.record_files import RecordFiles
from kafka_rebalance.kube.spec_changes import change
from kafka_rebalance.reconcile.engine import ClusterEngine

R = (REBALANCES, "default", "r")
LIMITS = (REASSIGNMENT_THROTTLES, "default", "limits")


def throttle(**spec):
    metadata = {"name": "limits", "namespace": "default", "labels": {}, "annotations": {}}
    return [(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": {**KAFKA, **spec}})]


class TestToTheEnd:
    async def test_succeeds(self, terminal, kafka):
        ended = await terminal.run()
        assert (ended.end, ended.throttled) == (End.DONE, False)
        assert ended.message.startswith("Succeeded: ")
        assert terminal.moved == 4
        assert kafka.values == {}

    async def test_again(self, terminal, kafka):
        """The same file has been carried out: nothing more is sent, as when a resource is applied again."""
        await terminal.run()
        calls = list(kafka.altered)
        kafka.assign("t", 0, 4)
        assert (await terminal.run()).end is End.DONE
        assert kafka.altered == calls

    async def test_a_time_to_live(self, terminal, kafka):
        """It has no effect: the directory is the record of what was carried out."""
        for _ in range(2):
            ended = await terminal.run(ttlSecondsAfterFinished=0)
            assert (ended.end, ended.message.partition(":")[0]) == (End.DONE, "Succeeded")
        assert terminal.moved == 4

    async def test_what_the_file_has_besides(self, terminal, kafka):
        """Lists are read from a ConfigMap of the file."""
        lists = '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [4]}]}'
        given = GivenObjects(config_maps={("default", "lists"): {"k": lists}})
        ref = {"configMapRef": {"name": "lists", "key": "k"}}
        assert (await terminal.run(strategy="Assignment", assignment=ref, given=given)).end is End.DONE
        assert kafka.lists("t") == [[4], *BEFORE[1:]]

    async def test_another_one_in_the_same_directory(self, terminal):
        """After the first has ended, not before."""
        kafka = terminal.kafka
        await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        with pytest.raises(Refused, match=r"default/r, which has not ended"):
            await terminal.run(name="other")
        await terminal.run()
        assert (await terminal.run(name="other", brokers={"decommission": [4]})).end is End.DONE
        assert all(4 not in row for row in kafka.lists("t"))


class TestRefusals:
    async def test_a_plan_that_is_refused(self, terminal, kafka, tmp_path):
        """It ends with the reason; a throttle resource of the file leaves nothing behind."""
        with pytest.raises(Refused) as refused:
            await terminal.run(brokers={"decommission": [9]}, others=throttle(leaderRate="1Mi"))
        assert refused.value.reason == "UnknownBroker"
        assert (kafka.altered, kafka.values) == ([], {})
        assert (await terminal.run()).end is End.DONE

    async def test_a_directory_in_use(self, terminal, kafka):
        files = RecordFiles.to_write(terminal.directory)
        with pytest.raises(Refused, match="another kafka-rebalance run"):
            await terminal.run()
        files.close()
        assert kafka.altered == []


class TestRestPoints:
    async def test_stops_between_steps_and_goes_on(self, terminal, kafka):
        ended = await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        assert ended.end is End.AT_REST
        assert 0 < terminal.moved < 4
        assert kafka.values == {}
        assert (await terminal.run(**ONE_AT_A_TIME)).end is End.DONE
        assert terminal.moved == 4

    async def test_waits_for_copies_in_flight(self, terminal, kafka):
        """They arrive, and their throttles are removed, before it ends."""
        kafka.slow = {3, 4}
        looks = []

        def arrive_late():
            looks.append(set(kafka.flying))
            if len(looks) == 10:
                kafka.arrive()

        two = {"execution": {"parallelPartitionCount": 2}}
        ended = await terminal.run(stops=lambda _: bool(kafka.flying), then=arrive_late, **two)
        assert (ended.end, terminal.moved) == (End.AT_REST, 2)
        assert all(looks[:10])
        assert (kafka.flying, kafka.values) == (set(), {})

    async def test_before_a_plan_is_there(self, terminal, kafka):
        assert (await terminal.run(stops=lambda _: True)).end is End.AT_REST
        assert kafka.altered == []


class TestEndedAtOnce:
    async def test_goes_on(self, terminal, kafka):
        """Copies in flight go on in Kafka; the next start takes them up, with their throttles."""
        kafka.slow = {3, 4}
        with pytest.raises(asyncio.CancelledError):
            await terminal.run(cuts=lambda _: bool(kafka.flying))
        assert kafka.flying
        assert kafka.rates(3) != (None, None)
        sent = len(kafka.altered)
        kafka.arrive()
        ended = await terminal.run()
        assert (ended.end, ended.throttled) == (End.DONE, False)
        assert terminal.moved == 4
        assert len(kafka.altered) > sent
        assert kafka.values == {}

    async def test_throttles_that_cannot_be_removed(self, terminal, monkeypatch):
        """A broker is down: the run ends all the same, and says so."""
        monkeypatch.setattr(ClusterEngine, "holds_throttles", True)
        ended = await terminal.run()
        assert (ended.end, ended.throttled) == (End.DONE, True)


class TestEditedFile:
    async def test_supersedes(self, terminal, kafka):
        """What was moved for the former plan is planned from where it is."""
        await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        assert (await terminal.run(brokers={"decommission": [3, 4]}, **ONE_AT_A_TIME)).end is End.DONE
        assert all({1, 2}.issuperset(row) for row in kafka.lists("t"))

    async def test_a_throttle_resource_that_is_no_longer_there(self, terminal, kafka):
        """With freeze nothing moves; without the resource it goes on."""
        frozen = throttle(freeze=True)
        ended = await terminal.run(stops=lambda state: state == "Frozen", others=frozen)
        assert (ended.end, kafka.altered) == (End.AT_REST, [])
        assert (await terminal.run()).end is End.DONE

    async def test_rates_of_the_file(self, terminal, kafka):
        """In force while something moves, and restored to what they were before."""
        kafka.values[1, REPLICATION_RATES[0]] = "12345678"
        kafka.slow = {3, 4}
        seen = []

        def look():
            seen.append(kafka.rates(3))
            kafka.arrive()

        await terminal.run(stops=lambda _: bool(kafka.flying), then=look, others=throttle(followerRate="2Mi"))
        assert seen[0][1] == str(2 * 2**20)
        assert kafka.values == {(1, REPLICATION_RATES[0]): "12345678"}


class TestKilledAtTheEnd:
    """The end of a run deletes the throttle resource. The run is killed before it has restored the configs."""

    @pytest.fixture
    async def killed(self, terminal, kafka):
        with pytest.raises(asyncio.CancelledError):
            await terminal.run(cuts=lambda _: bool(kafka.altered), others=throttle(followerRate="2Mi"), **ONE_AT_A_TIME)
        assert kafka.values != {}
        kube = DirectoryClient(terminal.directory, SystemClock().now)
        (body,) = await kube.list_resources(REASSIGNMENT_THROTTLES)
        assert await kube.delete_resource(*LIMITS, body["metadata"]["uid"])
        assert (await kube.get(*LIMITS))["metadata"]["finalizers"] != []
        await kube.close()

    @pytest.mark.usefixtures("killed")
    async def test_the_next_run_has_the_rates_of_the_file(self, terminal, kafka):
        """It does not use the defaults that apply without a throttle resource."""
        alter, rates = kafka.alter_reassignments, set()

        async def watched(orders):
            rates.update(rate for (_, name), rate in kafka.values.items() if name == REPLICATION_RATES[1])
            return await alter(orders)

        kafka.alter_reassignments = watched
        ended = await terminal.run(others=throttle(followerRate="2Mi"), **ONE_AT_A_TIME)
        assert (ended.end, ended.throttled, terminal.moved) == (End.DONE, False, 4)
        assert rates == {str(2 * 2**20)}
        assert kafka.values == {}

    @pytest.mark.usefixtures("killed")
    async def test_freeze_in_the_file_counts(self, terminal):
        """The partition in flight completes, and no other starts."""
        frozen = throttle(followerRate="2Mi", freeze=True)
        ended = await terminal.run(stops=lambda state: state == "Frozen", others=frozen, **ONE_AT_A_TIME)
        assert (ended.end, terminal.moved) == (End.AT_REST, 1)

    @pytest.mark.usefixtures("killed")
    async def test_a_file_without_it(self, terminal, kafka):
        """Its rates are restored, as after an end without a kill."""
        assert (await terminal.run()).end is End.DONE
        assert kafka.values == {}
        kube = DirectoryClient(terminal.directory, SystemClock().now)
        assert await kube.list_resources(REASSIGNMENT_THROTTLES) == []
        await kube.close()


class TestSecondTerminal:
    """Commands change the resource while a run uses the directory, and between two runs."""

    @pytest.fixture
    def command(self, terminal):
        """Changes the resource from a thread of its own: ``patch``, or None to delete it."""

        def change_it(patch):
            async def do():
                kube = DirectoryClient(terminal.directory, SystemClock().now)
                try:
                    if patch is not None:
                        await change(kube, *R, lambda _: patch)
                    else:
                        body = await kube.get(*R)
                        await kube.delete_resource(*R, body["metadata"]["uid"])
                finally:
                    await kube.close()

            return asyncio.to_thread(lambda: asyncio.run(do()))

        return change_it

    async def test_approved(self, terminal, kafka, command):
        """The approval lasts: a start after a kill does not ask again."""
        spec = {"approval": {"policy": "Manual"}, **ONE_AT_A_TIME}
        approving = []

        def approve(state):
            if state == "AwaitingApproval" and not approving:
                plan_hash = terminal.seen.status.plan.hash
                approving.append(asyncio.ensure_future(command({"spec": {"approval": {"planHash": plan_hash}}})))
            return False

        with pytest.raises(asyncio.CancelledError):
            await terminal.run(stops=approve, cuts=lambda _: bool(kafka.altered), **spec)
        await approving[0]
        ended = await terminal.run(**spec)
        assert (ended.end, terminal.moved) == (End.DONE, 4)
        assert "AwaitingApproval" not in terminal.states

    async def test_suspended_and_resumed(self, terminal, kafka, command):
        """Also from one run to the next, as long as the file says nothing else."""
        await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        moved = terminal.moved
        await command({"spec": {"execution": {"suspend": True}}})
        ended = await terminal.run(stops=lambda state: state == "Suspended", **ONE_AT_A_TIME)
        assert (ended.end, terminal.moved) == (End.AT_REST, moved)
        resuming = []

        def resume(state):
            if state == "Suspended" and not resuming:
                resuming.append(asyncio.ensure_future(command({"spec": {"execution": {"suspend": False}}})))
            return False

        assert (await terminal.run(stops=resume, **ONE_AT_A_TIME)).end is End.DONE
        await resuming[0]

    @pytest.mark.parametrize(("policy", "end"), [("Rollback", End.DONE), ("Revert", End.PARTIAL)])
    @pytest.mark.parametrize("between", [False, True], ids=["while-it-runs", "between-two-runs"])
    async def test_cancelled(self, terminal, kafka, command, between, policy, end):
        """By its deletion policy, which the next start does not change."""
        deleting = []

        async def cancel():
            await command({"spec": {"deletionPolicy": policy}})
            await command(None)

        def then(_):
            if kafka.flying and not deleting:
                deleting.append(asyncio.ensure_future(cancel()))
            return False

        if not between:
            kafka.slow = {3}  # copies to 4 arrive, and then it waits for the command

        stops = (lambda _: bool(kafka.altered)) if between else then
        ended = await terminal.run(stops=stops, **ONE_AT_A_TIME)
        if between:
            await cancel()
            ended = await terminal.run(**ONE_AT_A_TIME)
        assert ended.end is end
        assert (kafka.lists("t") == BEFORE) is (policy == "Rollback")
        assert kafka.values == {}

    async def test_a_request_of_before_a_kill(self, terminal, kafka):
        """It is carried out before the file is applied."""
        await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        body = await asyncio.to_thread(RecordFiles.to_read(terminal.directory).read, *R)
        suspend = {"spec": {"execution": {"suspend": True}}}
        ChangeRequests(terminal.directory).hand_in(ChangeRequest(*R, body["metadata"]["resourceVersion"], suspend))
        moved = terminal.moved
        edited = {"execution": {"parallelPartitionCount": 2}}
        await terminal.run(stops=lambda state: state == "Suspended", **edited)
        assert terminal.moved == moved
        assert terminal.seen.spec.execution.parallel_partition_count == 2
