"""The judge reports each kind of broken rule."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON
from tests.simulation.judge import Judge
from tests.simulation.log_dir_judge import LogDirJudge
from tests.simulation.origin_judge import OriginJudge
from tests.simulation.owner_judge import OwnerJudge
from tests.simulation.process import at_once
from tests.simulation.status_judge import StatusJudge
from tests.simulation.virtual_time import in_simulated_time

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REBALANCES, parse_rebalance, planning_hash
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.kube.binding_store import BindingStore
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import PartitionState, TopicPartition, replicas_of

TP = TopicPartition("t", 0)


class Ordered:
    """The runs a and b have both moved a partition; b copies it to broker 3 now, or others to broker 4.

    ``sender``: the resource for which the copy is cancelled.
    """

    def __init__(self, adding, sender):
        self.kube = KubeInMemory()
        replicas, here = replicas_of(2, adding), frozenset(replicas_of(2))
        self.state = PartitionState(TP, "id", replicas, here, replicas[0], adding=replicas_of(adding))
        basis = SimpleNamespace(read={TP: (self.state, 0.0)}, resource=f"n/{sender}", since=0.0)
        self.client = SimpleNamespace(process=SimpleNamespace(), host="kafka-n", basis=basis)
        self.bodies = {uid: self.body(uid) for uid in "ab"}
        self.judge = Judge(self)

    loop = SimpleNamespace(now=0.0)
    kafka = SimpleNamespace(dead={}, states={})

    @staticmethod
    def body(uid):
        metadata = {"name": uid, "namespace": "n", "uid": uid, "finalizers": []}
        return {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "kafka-n:9092"}}}

    async def stored(self):
        """With the owner and both runs on record."""
        await BindingStore(self.kube).save(Binding("c", Owner("n")))
        await self._store("a", replicas_of(3), replicas_of(2))
        await self._store("b", replicas_of(2), replicas_of(3))
        return self

    async def _store(self, uid, before, target):
        spec = parse_rebalance(self.bodies[uid]).spec
        plan = Plan((PlannedPartition(TP, before, target, "id"),), Certificate.of(1, 1))
        run = Run(uid, "n", uid, "c", "run", planning_hash(spec), plan.hash, NOON, started_at=NOON)
        await PlanStore(self.kube).save(uid, plan.hash, "c", plan, NOON)
        await OriginStore(self.kube).append(uid, "run", [Origin(TP, "id", before, before[0])])
        await RunStore(self.kube).save(run)

    def note(self, _):
        """The trace of the seed is not looked at."""

    def body_of(self, uid):
        return self.bodies[uid]

    def host_of(self, owner):
        return f"kafka-{owner.namespace}"

    def min_insync(self, _):
        return 1

    def cancelled(self, ours):
        """What is broken when the copy is cancelled, which the resource with this uid has begun; None: others."""
        if ours is not None:
            self.judge.ours[TP] = ours
        self.judge.ordered(self.client, TP, None, self.state, AlterCode.OK)
        return self.judge.broken


def broken_by(adding, ours, change=lambda _: None, sender="b"):
    """What a cancel breaks, in the loop of the simulation."""

    async def judged():
        ordered = await Ordered(adding, sender).stored()
        change(ordered)
        return ordered.cancelled(ours)

    return in_simulated_time(judged())


def delete(uid):
    return lambda ordered: ordered.bodies[uid]["metadata"].update(deletionTimestamp="2026-01-01T12:00:00Z")


class TestCancels:
    def test_of_a_copy_that_another_run_wants(self):
        """The rollback of a has an origin of the partition, and the copy is that of b."""
        assert broken_by(3, "b", delete("a"), sender="a") == [
            "t-0 -> null: cancels the copy of b, which still wants it"
        ]

    def test_of_a_copy_of_others(self):
        (said,) = broken_by(4, None)
        assert said == "t-0 -> null: cancels the copy to [4], which no plan or origin names"

    @pytest.mark.parametrize(
        "change",
        [delete("b"), lambda ordered: ordered.bodies["b"]["spec"].update(topics={"include": ["u"]})],
        ids=["deleted", "edited"],
    )
    def test_of_a_copy_that_its_run_gives_up(self, change):
        assert broken_by(3, "b", change) == []

    def test_of_a_copy_that_an_undo_began(self):
        """It takes an old answer for the present one, and then cancels its own copy."""

        def undo(ordered):
            runs = RunStore(ordered.kube)
            at_once(runs.save(replace(at_once(runs.load("b")), undo=True)))

        assert broken_by(3, "b", undo) == []


class TestLimits:
    """The run b has parallelPartitionCount 1, and t-1 is in flight if this is given; it copies t-0."""

    OTHER = TopicPartition("t", 1)

    def broken(self, *, flies, redirected=False, late_at=None):
        """``late_at``: when the order acted by which t-1 is in flight, and its sender had given it up."""

        async def judged():
            ordered = await Ordered(3, "b").stored()
            at_rest = replace(ordered.state, replicas=replicas_of(2), adding=())
            other = ordered.state if flies else at_rest
            ordered.kafka = SimpleNamespace(dead={}, states={TP: at_rest, self.OTHER: replace(other, tp=self.OTHER)})
            read = {TP: (at_rest, 1.0)}
            ordered.client.basis = SimpleNamespace(read=read, resource="n/b", since=1.0, late=False)
            judge = ordered.judge
            judge.late = {} if late_at is None else {self.OTHER: late_at}
            judge.edited_throttle, judge.ours, judge.limited = True, {self.OTHER: "b"}, {self.OTHER}
            judge.statuses.edited(ordered.bodies["b"])
            judge.cap("b", {"parallelPartitionCount": 1})
            if redirected:
                judge.ordered(None, self.OTHER, replicas_of(2, 4), other, AlterCode.OK)
            judge.ordered(ordered.client, TP, replicas_of(2, 3), at_rest, AlterCode.OK)
            return [said for said in judge.broken if "in flight" in said]

        return in_simulated_time(judged())

    def test_count_the_copy_that_begins(self):
        assert self.broken(flies=True) == ["t-0 -> [2, 3]: 2 partitions in flight, and parallelPartitionCount is 1"]

    def test_do_not_count_what_has_arrived(self):
        assert self.broken(flies=False) == []

    def test_do_not_count_what_others_have_redirected(self):
        assert self.broken(flies=True, redirected=True) == []

    @pytest.mark.parametrize(("at", "count"), [(0.5, 1), (1.5, 0)], ids=["before the last rounds", "during them"])
    def test_count_an_order_that_was_given_up_once_it_must_be_known(self, at, count):
        assert len(self.broken(flies=True, late_at=at)) == count


class TestCordons:
    """The run a has cordoned broker 5, and loses this record."""

    def left(self, **change):
        """The brokers that may stay cordoned."""

        async def judged():
            ordered = await Ordered(3, "a").stored()
            run = replace(await RunStore(ordered.kube).load("a"), cordoned=replicas_of(5))
            for recorded in (run, replace(run, cordoned=(), **change)):
                ordered.judge._note_end(recorded)
            return ordered.judge.emptied

        return in_simulated_time(judged())

    def test_stay_if_another_owner_has_got_the_cluster(self):
        assert self.left(unproved=True) == {5}

    def test_are_removed_otherwise(self):
        assert self.left() == set()


class TestOrigins:
    """A run sends its first call for a partition. Its origin has the brokers 1 and 2."""

    RUN, ORIGIN = SimpleNamespace(undo=False, uid="a"), SimpleNamespace(replicas=replicas_of(1, 2))

    def broken(self, *read, changed=0.0, inherited=None):
        """By the call, if others changed the partition then, and the last rounds began at 5 s."""
        broken = []
        judge = SimpleNamespace(foreign={TP: changed}, inherited=inherited or {}, breach=broken.append)
        OriginJudge(judge).first_call(
            "t-0 -> [3]", TP, SimpleNamespace(replicas=read), self.RUN, self.ORIGIN, since=5.0
        )
        return broken

    def test_are_those_of_the_first_call(self):
        assert self.broken(1, 3) == ["t-0 -> [3]: the first call, with the origin [1, 2] on record and [1, 3] read"]

    def test_may_be_those_before_a_call_without_an_answer(self):
        assert self.broken(2, 1) == self.broken(1, 2, 3) == []

    def test_do_not_have_what_others_change_between_record_and_call(self):
        assert self.broken(1, 3, changed=5.0) == []

    def test_may_be_inherited(self):
        assert self.broken(1, 3, inherited={"a": {TP: (4,)}}) == []


class TestInheritedOrigins:
    """The run a follows one that it took over, before which t-0 had the brokers 1 and 2. It sends its first call."""

    def broken(self, *recorded, changed=(), moved_by="a", undo=False):
        """By these origins on record; ``changed``: the partitions that others have changed.

        ``moved_by``: whose run has moved t-0 since.
        """
        broken, run = [], SimpleNamespace(uid="a", run_id="run", undo=undo)
        judge = SimpleNamespace(inherited={"a": {(TP, "id"): replicas_of(1, 2)}}, foreign=dict.fromkeys(changed, 0.0))
        judge.world = SimpleNamespace(kafka=SimpleNamespace(states={TP: SimpleNamespace(topic_id="id")}))
        judge.log_dirs = LogDirJudge(judge.world, judge)
        judge.log_dirs.movers[TP] += [(1.0, "a"), (2.0, moved_by)]
        on_record = {origin.tp: origin for origin in (Origin(TP, "id", replicas) for replicas in recorded)}
        judge._origins = lambda _uid, _run_id: on_record
        judge.breach = broken.append
        OriginJudge(judge).starts("u-0 -> [3]", run)
        return broken

    def test_are_on_record(self):
        assert self.broken(replicas_of(1, 2)) == []

    @pytest.mark.parametrize(("recorded", "told"), [((), "nothing"), ((replicas_of(1, 3),), "[1, 3]")])
    def test_are_missing(self, recorded, told):
        said = f"u-0 -> [3]: t-0 was [1, 2] before the run that was taken over, recorded: {told}"
        assert self.broken(*recorded) == [said]

    def test_are_of_no_use_where_others_have_moved_the_partition(self):
        assert self.broken(changed=[TP]) == []

    def test_are_of_no_use_where_another_rebalance_has_moved_it(self):
        assert self.broken(replicas_of(3, 4), moved_by="c") == []

    def test_are_not_those_of_an_undo(self):
        assert self.broken(undo=True) == []


class TestTakeovers:
    """The resource b takes over from a, which has moved t-0, and another partition if it is given."""

    OTHER = TopicPartition("t", 1)

    def broken(self, change=lambda _: None):
        async def judged():
            ordered = await Ordered(3, "a").stored()
            ordered.kafka = SimpleNamespace(states={tp: replace(ordered.state, tp=tp) for tp in (TP, self.OTHER)})
            change(ordered)
            run = replace(await RunStore(ordered.kube).load("a"), successor="b")
            sent = {(tp, "id"): replicas_of(1) for tp in (TP, self.OTHER)}
            ordered.judge.statuses.taken_over(run, sent)
            return ordered.judge.broken

        return in_simulated_time(judged())

    def test_by_a_plan_that_leaves_a_partition(self):
        assert self.broken() == ["b takes a over, and its plan does not move ['t-1']"]

    def test_by_name(self):
        assert self.broken(lambda ordered: ordered.bodies["b"]["spec"].update(takesOver="a")) == []

    @pytest.mark.parametrize(
        "change",
        [
            lambda ordered: ordered.kafka.states.pop(TestTakeovers.OTHER),
            lambda ordered: ordered.judge.foreign.update({TestTakeovers.OTHER: 1.0}),
            lambda ordered: ordered.judge.deaths.update({1: 1.0}),
            lambda ordered: ordered.judge.log_dirs.movers[TestTakeovers.OTHER].append((1.0, "c")),
        ],
        ids=["deleted", "moved by others", "dead", "moved by another run"],
    )
    def test_leave_what_the_rollback_leaves(self, change):
        assert self.broken(change) == []

    def test_do_not_depend_on_other_brokers(self):
        assert self.broken(lambda ordered: ordered.judge.deaths.update({5: 1.0})) != []


class TestPermissions:
    """The operator may not describe t, and a resource that selects these topics reports it."""

    def broken(self, *selected, denied="t", inherited=None):
        broken = []
        judge = SimpleNamespace(inherited=inherited or {}, breach=broken.append)
        statuses = StatusJudge(SimpleNamespace(loop=SimpleNamespace(now=0.0)), judge)
        statuses.denied.add(denied)
        ready = {"type": "Ready", "reason": "KafkaAuthorizationFailed", "message": "not allowed"}
        body = {"metadata": {"name": "a", "uid": "a"}, "status": {"conditions": [ready]}}
        for topics in selected:
            statuses.edited(body | {"spec": {"topics": {"include": [topics]}}})
        statuses.reported(body)
        return broken

    def test_on_a_topic_that_it_does_not_select(self):
        assert self.broken("u.*") == ["a waits for permissions on ['t'], and selects {'u.*'}"]

    def test_on_a_topic_that_it_selects_or_has_selected(self):
        assert self.broken("t") == self.broken("t", "u") == []

    def test_on_a_broker(self):
        assert self.broken("u", denied=1) == []

    def test_on_a_topic_of_a_run_that_it_took_over(self):
        assert self.broken("u", inherited={"a": {TP: (4,)}}) == []


class TestOwners:
    """The cluster passes from an owner, to which a resource of namespace a leads, to the inline connections of b."""

    def broken(self, kafka, before, *, age, **metadata):
        kube, broken = KubeInMemory(), []
        created = {"creationTimestamp": (NOON - timedelta(seconds=age)).isoformat()}
        about = {"name": "r1", "namespace": "a", "uid": "r1", **created, **metadata}
        kube.create(REBALANCES, {"metadata": about, "spec": {"kafka": kafka}})
        kube.create(CONNECTIONS, {"metadata": {"name": "prod", "namespace": "a", "uid": "c"} | metadata, "spec": {}})
        rebalances = [(key, body) for key, body in kube.resources.items() if key[0] == REBALANCES]
        clock, loop = SimpleNamespace(now=lambda: NOON), SimpleNamespace(now=0.0)
        world = SimpleNamespace(kube=kube, rebalances=lambda: rebalances, clock=clock, loop=loop)
        owners = OwnerJudge(world, SimpleNamespace(breach=broken.append))
        for owner in (before, Owner("b")):
            at_once(BindingStore(kube).save(Binding("c", owner)))
            owners.recorded()
        return broken

    def test_a_resource_leads_there(self):
        assert self.broken({"bootstrapServers": "k:9092"}, Owner("a"), age=61) != []

    @pytest.mark.parametrize(
        ("kafka", "age", "metadata"),
        [
            ({"bootstrapServers": "k:9092"}, 60, {}),
            ({"bootstrapServers": "k:9092"}, 61, {"deletionTimestamp": "2026-01-01T12:00:00Z"}),
            ({"connectionRef": {"name": "prod"}}, 61, {}),
        ],
        ids=["not read yet", "deleted", "by a KafkaConnection"],
    )
    def test_no_resource_leads_there(self, kafka, age, metadata):
        assert self.broken(kafka, Owner("a"), age=age, **metadata) == []

    def test_a_kafka_connection_exists(self):
        assert self.broken({"connectionRef": {"name": "prod"}}, Owner("a", "prod"), age=61) != []

    def test_a_kafka_connection_is_deleted(self):
        deleted = {"deletionTimestamp": "2026-01-01T12:00:00Z"}
        assert self.broken({"connectionRef": {"name": "prod"}}, Owner("a", "prod"), age=61, **deleted) == []


class TestListeners:
    """There is only one cluster, and a resource says that its server is another one."""

    @pytest.mark.parametrize("deleted", [False, True])
    def test_are_the_same_cluster(self, deleted):
        """Unless the topics were deleted by which it was known."""
        broken = []
        statuses = StatusJudge(SimpleNamespace(), SimpleNamespace(inherited={}, breach=broken.append))
        statuses.topics_deleted = deleted
        ready = {
            "type": "Ready",
            "reason": "ClusterIdCollision",
            "message": "in which there is work, but is another cluster",
        }
        statuses.reported({"metadata": {"name": "a", "uid": "a"}, "spec": {}, "status": {"conditions": [ready]}})
        assert bool(broken) is not deleted
