"""kafka-rebalance retire: nothing is stranded or cut short without consent; after a failure an operator runs."""

import asyncio
import functools
import os
import signal
from datetime import UTC, datetime

import pytest
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.api.v1alpha1 import FINALIZER, LET_GO_ANNOTATION, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.cli.commands import retire_command as module
from kafka_rebalance.cli.commands.retire_command import Order, UnderWay, carry_out
from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.execution.ledger import Before, Ledger, RateRecord
from kafka_rebalance.execution.ledger_json import ledger_to_json
from kafka_rebalance.kube.lease import LEASE_NAME, LeaseHolder
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import Run, RunOutcome
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.retirement import Retirement

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
ALL = ()
OTHERS = "example.com/other"
UNSETTLED = Ledger({BrokerId(4): {"leader.replication.throttled.rate": RateRecord(Before(None, dynamic=False))}})


class Clock:
    """A sleep advances the time and returns at once."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return NOW

    def monotonic(self):
        return self.time

    async def sleep(self, seconds):
        self.time += seconds
        await asyncio.sleep(0)


class World:
    """An operator's namespace and its resources. The operator is a Lease that is released when there are no Pods."""

    def __init__(self):
        self.kube = KubeInMemory()
        self.clock = Clock()

    def resource(self, name, *finalizers, plural=REBALANCES, deleted=False, namespace="kafka"):
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "finalizers": list(finalizers)}
        if deleted:
            metadata["deletionTimestamp"] = "2026-01-01T12:00:00Z"
        self.kube.create(plural, {"metadata": metadata, "spec": {}})

    async def run(self, name, outcome=None, cluster="c"):
        closed = NOW if outcome else None
        await RunStore(self.kube).save(Run(f"uid-{name}", "kafka", name, cluster, "r", "h", "p", NOW, closed, outcome))

    async def ledger(self, ledger, cluster="c"):
        await LedgerStore(self.kube).save(cluster, ledger_to_json(ledger))

    def finalizers(self, name, plural=REBALANCES):
        return self.kube.resources[plural, "kafka", name]["metadata"]["finalizers"]

    async def retire(self, under_way=UnderWay.REFUSE, *, namespaces=ALL, deployment="operator", **options):
        order = Order(namespaces, under_way, deployment=deployment, replicas=2, **options)
        holder = LeaseHolder(self.kube, LEASE_NAME, "retire", self.clock)
        await carry_out(order, self.kube, self.kube, holder)


@pytest.fixture
def world():
    return World()


class TestNothingUnderWay:
    async def test_every_resource_is_let_go(self, world):
        """Of both kinds; foreign finalizers stay."""
        world.resource("a", OTHERS, FINALIZER)
        world.resource("b", OTHERS)
        world.resource("t", FINALIZER, plural=REASSIGNMENT_THROTTLES)
        await world.run("a", RunOutcome.SUCCEEDED)
        await world.ledger(Ledger())
        await world.retire()
        assert (world.finalizers("a"), world.finalizers("b")) == ([OTHERS], [OTHERS])
        assert world.finalizers("t", REASSIGNMENT_THROTTLES) == []

    async def test_many_foreign_finalizers_stay(self, world):
        """Only some of them are kept in memory."""
        others = [f"{OTHERS}-{number}" for number in range(50)]
        world.resource("a", *others, FINALIZER)
        await world.run("a", RunOutcome.SUCCEEDED)
        await world.retire()
        assert world.finalizers("a") == others

    async def test_the_operator_is_stopped_first(self, world):
        """It would add its finalizer again within a second."""
        world.resource("a", FINALIZER)
        operator = LeaseHolder(world.kube, LEASE_NAME, "operator", world.clock)
        await operator.acquire()
        seen = []

        async def ends():
            seen.append(list(world.finalizers("a")))
            await operator.release()

        world.kube.on_scale = ends
        await world.retire()
        assert (seen, world.kube.scaled, world.finalizers("a")) == ([[FINALIZER]], [0], [])

    async def test_what_waits_is_not_under_way(self, world):
        """Queued, awaiting approval, planning failed: nothing was changed in Kafka."""
        world.resource("queued", FINALIZER)
        await world.retire()
        assert world.finalizers("queued") == []

    async def test_no_lease_is_left(self, world):
        await world.retire()
        assert world.kube.leases == {}

    async def test_only_its_own_namespaces(self, world):
        world.resource("a", FINALIZER)
        world.resource("b", FINALIZER, namespace="elsewhere")
        await world.retire(namespaces=("kafka",))
        assert world.kube.resources[REBALANCES, "elsewhere", "b"]["metadata"]["finalizers"] == [FINALIZER]

    async def test_somebody_writes_at_the_same_time(self, world):
        world.resource("a", FINALIZER)
        world.kube.rivals.append(lambda metadata: metadata["finalizers"].append(OTHERS))
        await world.retire()
        assert world.finalizers("a") == [OTHERS]


class TestUnderWay:
    @pytest.mark.parametrize(
        ("case", "said"),
        [
            ("running", "KafkaRebalance kafka/a is running"),
            ("deleting", "KafkaRebalance kafka/a is being deleted"),
            ("restoring", "KafkaReassignmentThrottle kafka/t is being deleted"),
            ("unsettled", "cluster c: throttles of ours are set, or not known to be restored, on broker 4"),
            ("damaged", "throttle ledger cannot be read"),
        ],
    )
    async def test_refused_with_what_it_is(self, world, case, said):
        """Then nothing is changed, and the operator is not stopped."""
        world.resource("a", FINALIZER, deleted=case == "deleting")
        if case == "running":
            await world.run("a")
        elif case == "restoring":
            world.resource("t", FINALIZER, plural=REASSIGNMENT_THROTTLES, deleted=True)
        elif case == "unsettled":
            await world.ledger(UNSETTLED)
        elif case == "damaged":
            await LedgerStore(world.kube).save("c", {"version": 99})
        with pytest.raises(Refused, match=said):
            await world.retire()
        assert (world.finalizers("a"), world.kube.scaled) == ([FINALIZER], [])

    async def test_the_throttle_of_what_runs_is_not_said_twice(self, world):
        world.resource("a", FINALIZER)
        await world.run("a")
        await world.ledger(UNSETTLED)
        remains = await Retirement(world.kube, ALL).look()
        assert remains.under_way == ("KafkaRebalance kafka/a is running (no state yet)",)

    async def test_a_run_without_a_resource_is_nobodys(self, world):
        """No operator continues it: waiting for it would never end."""
        await world.run("gone")
        await world.retire()

    async def test_begun_after_the_look(self, world):
        """The operator runs again, as before."""
        world.resource("a", FINALIZER)
        world.kube.on_scale = functools.partial(world.run, "a")
        with pytest.raises(Refused, match="is running"):
            await world.retire()
        assert (world.kube.scaled, world.finalizers("a")) == ([0, 2], [FINALIZER])
        assert world.kube.leases[LEASE_NAME]["spec"]["holderIdentity"] == ""

    async def test_wait(self, world, monkeypatch):
        """It waits for the running rebalance, reports it once, and then retires as usual."""
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0)
        world.resource("a", FINALIZER)
        await world.run("a")

        async def end():
            await asyncio.sleep(0.01)
            await world.run("a", RunOutcome.SUCCEEDED)

        await asyncio.gather(end(), world.retire(UnderWay.WAIT, timeout_seconds=60))
        assert world.finalizers("a") == []

    async def test_wait_is_over(self, world):
        world.resource("a", FINALIZER)
        await world.run("a")
        with pytest.raises(Refused, match="is running"):
            await world.retire(UnderWay.WAIT, timeout_seconds=0)
        assert world.kube.scaled == []

    @pytest.mark.parametrize("under_way", [UnderWay.REFUSE, UnderWay.WAIT])
    async def test_the_operator_is_stopped_already(self, world, under_way, capsys):
        """For example, by a Job that was killed: nothing ends what is under way. It may be stopped on purpose."""
        world.resource("a", FINALIZER)
        await world.run("a")
        world.kube.scaled = [0]
        with pytest.raises(Refused, match="is running"):
            await world.retire(under_way)
        assert "kubectl scale -n kafka-rebalance deployment/operator --replicas=2" in capsys.readouterr().err
        assert world.kube.scaled == [0]

    async def test_leave(self, world):
        """Then the resource can be deleted; run and records stay for the next operator."""
        world.resource("a", FINALIZER)
        await world.run("a")
        await world.ledger(UNSETTLED)
        before = dict(world.kube.config_maps)
        await world.retire(UnderWay.LEAVE, forget=True)
        assert (world.finalizers("a"), world.kube.config_maps) == ([], before)

    async def test_leave_ends_deletions_by_the_operator(self, world, monkeypatch):
        """The operator closes their runs. If it does not, they are released anyway."""
        monkeypatch.setattr(module, "LET_GO_SECONDS", 1)
        world.resource("a", FINALIZER, deleted=True)
        await LeaseHolder(world.kube, LEASE_NAME, "operator", world.clock).acquire()
        seen = []

        async def ends():
            seen.append(world.kube.resources[REBALANCES, "kafka", "a"]["metadata"]["annotations"])

        world.kube.on_scale = ends
        await world.retire(UnderWay.LEAVE)
        assert seen == [{LET_GO_ANNOTATION: "true"}]
        assert world.kube.resources == {}


class TestRecords:
    async def test_are_kept(self, world):
        """An operator that is installed later uses them, and undo works."""
        await world.run("a", RunOutcome.SUCCEEDED)
        await world.retire()
        assert await RunStore(world.kube).list_all()

    async def test_are_forgotten_where_that_is_asked_for(self, world):
        """Only our own records."""
        foreign = {"metadata": {"name": "x", "labels": {"app.kubernetes.io/managed-by": "kafka-rebalance-operator"}}}
        await world.kube.create_config_map(foreign)
        await world.run("a", RunOutcome.SUCCEEDED)
        await world.ledger(Ledger())
        await world.retire(forget=True)
        assert list(world.kube.config_maps) == ["x"]


class TestTrouble:
    async def test_a_namespace_that_may_not_be_looked_into(self, world):
        """The resources in it are unknown, so the command must not report that there are none."""
        world.kube.forbidden_namespaces.add("gone")
        with pytest.raises(Permanent, match=r"namespace gone may not be listed"):
            await world.retire(namespaces=("gone",))

    async def test_an_operator_that_does_not_stop(self, world, monkeypatch, capsys):
        monkeypatch.setattr(module, "STOP_SECONDS", 0.01)
        monkeypatch.setattr(world.clock, "sleep", lambda seconds: asyncio.sleep(0))
        await LeaseHolder(world.kube, LEASE_NAME, "stubborn", world.clock).acquire()
        world.resource("a", FINALIZER)
        with pytest.raises(Permanent, match="still held by stubborn"):
            await world.retire()
        assert (world.kube.scaled, world.finalizers("a")) == ([0, 2], [FINALIZER])
        said = capsys.readouterr().err
        assert "waiting until stubborn has released lease" in said
        assert said.endswith(" has 2 replicas again\n")

    @pytest.mark.parametrize(("failures", "seconds", "started"), [(3, 3600.0, True), (10**9, 0.0, False)])
    async def test_the_api_server_does_not_answer(self, world, monkeypatch, capsys, failures, seconds, started):
        """That is why the command fails, and the operator must not stay stopped because of it."""
        monkeypatch.setattr(module, "_START_AGAIN_SECONDS", seconds)
        monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
        world.resource("a", FINALIZER)
        left = []

        async def away(*_):
            raise Transient("ApiServerUnreachable", "no answer")

        async def scaled():
            if world.kube.scaled[-1] and len(left) < failures:
                left.append(1)
                raise Transient("ApiServerUnreachable", "no answer to scale")

        world.kube.on_scale = scaled
        world.kube.patch_finalizers = away
        with pytest.raises(Transient, match=r"no answer$"):
            await world.retire()
        assert world.kube.scaled == [0, 2, 2, 2, 2][: 5 if started else 2]
        said = capsys.readouterr().err
        assert ("has 2 replicas again" in said) is started
        assert said.count("kubectl scale -n kafka-rebalance deployment/operator --replicas=2") == 1

    async def test_a_deployment_that_is_not_there(self, world, monkeypatch, capsys):
        """Nothing was stopped, so nothing was started again."""

        async def scale(*_):
            return False

        monkeypatch.setattr(module, "STOP_SECONDS", 0.01)
        monkeypatch.setattr(world.clock, "sleep", lambda seconds: asyncio.sleep(0))
        monkeypatch.setattr(module.Installation, "scale", scale)
        await LeaseHolder(world.kube, LEASE_NAME, "stubborn", world.clock).acquire()
        with pytest.raises(Permanent, match="still held by stubborn"):
            await world.retire()
        said = capsys.readouterr().err
        assert "not found" in said
        assert "again" not in said

    async def test_a_job_that_is_stopped(self, world, monkeypatch):
        """A terminated Job does not leave the operator stopped."""
        world.resource("a", FINALIZER)
        reached = asyncio.Event()

        async def forever(self, resources):
            reached.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(Retirement, "let_go", forever)
        task = asyncio.create_task(module._until_terminated(world.retire()))
        await reached.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Transient, match="interrupted"):
            await task
        assert world.kube.scaled == [0, 2]
        assert world.kube.leases[LEASE_NAME]["spec"]["holderIdentity"] == ""
