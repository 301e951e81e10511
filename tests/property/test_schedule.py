"""Any shares, any cluster, any caps: no cap is exceeded, and nothing that fits is left out."""

import random
from collections import Counter
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.execution.limits import Ceilings, Limits
from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.schedule import RebalanceShare, schedule
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import Broker, BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of

BROKERS = range(5)
LIMIT = st.sampled_from([99] * 20 + [3, 2, 1, 0])
CAP = st.sampled_from([None] * 20 + [3, 2, 1, 0])
"""Most are open: if every cap were tight, nothing would ever be sent."""
FLAGS = list(product((False, True), repeat=3))
ROWS = ["copy"] * 12 + ["drop", "elect", "fly", "fly", "cancel", "stuck", "foreign", "done"]
ROW = st.tuples(
    st.sampled_from(ROWS),
    st.sampled_from([""] * 4 + ["__"]),
    st.integers(0, 9),
    st.sampled_from(list(permutations(BROKERS))),
    st.sampled_from([1, 1, 1, 2, 3]),
    st.sampled_from([FLAGS[0]] * 8 + FLAGS),
    st.sampled_from([0, 1, 5, 5, 10, 20, 30]),
)


@st.composite
def partitions(draw, name):
    """A partition, its status and its metadata, consistent with the judge."""
    row, topic, number, order, copies, (leads, begun, arrived), size = draw(ROW)
    tp = TopicPartition(topic + name, number)
    here, to = replicas_of(*order[:2]), replicas_of(*order[2 : 2 + copies])
    status = {
        "copy": PartitionStatus(
            MovePhase.READY, call=Alter(here + to, until_in_sync=to), started=begun, leader_movement=leads
        ),
        "drop": PartitionStatus(MovePhase.READY, call=Alter(here[:1]), started=True, leader_movement=leads),
        "elect": PartitionStatus(MovePhase.READY, call=Elect(here[0]), started=begun, leader_movement=True),
        "fly": PartitionStatus(MovePhase.IN_FLIGHT, started=True, leader_movement=leads),
        "cancel": PartitionStatus(MovePhase.READY, cancel=True, started=True),
        "stuck": PartitionStatus(MovePhase.WAITING, "CancelImpossible", started=True),
        "foreign": PartitionStatus(MovePhase.WAITING, "ForeignReassignment"),
        "done": PartitionStatus(MovePhase.DONE),
    }[row]
    adding = to if row in {"fly", "cancel", "stuck", "foreign"} else ()
    in_sync = frozenset(here + adding[:arrived])
    return tp, status, PartitionState(tp, "", here + adding, in_sync, here[0], adding), size


@st.composite
def clusters(draw):
    """Shares of a cluster, with all other inputs of the schedule."""
    shares, states = [], {}
    for name in draw(st.sampled_from(["a", "ab", "ab", "abc"])):
        rows = draw(st.lists(partitions(name), min_size=3, max_size=10, unique_by=lambda row: row[0]))
        states |= {tp: state for tp, _, state, _ in rows}
        limits = Limits(1, draw(LIMIT), draw(LIMIT), draw(CAP), draw(CAP), draw(CAP))
        sizes = {tp: size for tp, _, _, size in rows if size != 1}  # 1: unknown
        shares.append(RebalanceShare({tp: status for tp, status, _, _ in rows}, sizes, limits))
    for tp, _, state, _ in draw(st.lists(partitions("elsewhere"), max_size=2, unique_by=lambda row: row[0])):
        states[tp] = state
    cluster = ClusterState("c", {BrokerId(b): Broker(BrokerId(b)) for b in BROKERS}, states)
    room = draw(st.sampled_from([99, 99, 30, 20, 10, 0]))
    free = {BrokerId(b): room + b for b in BROKERS[draw(st.sampled_from([0, 2, 5])) :]}
    present = draw(st.integers(0, 9))
    on_disk = {(tp, b): present for tp, state in states.items() for b in state.adding}
    return shares, cluster, Ceilings(draw(CAP), draw(CAP), draw(CAP)), free, on_disk


class Books:
    """Counts by the rules, submission by submission, and names the caps that forbid the next one."""

    def __init__(self, shares, cluster, ceilings, free, on_disk):
        self.cluster, self.ceilings = cluster, ceilings
        self.used = Counter()
        self.free = dict(free)
        owners = {tp: (index, share) for index, share in enumerate(shares) for tp in share.statuses}
        for tp, state in cluster.partitions.items():
            index, share = owners.get(tp, (None, None))
            status = share.statuses[tp] if share else None
            if state.in_flight and (status is None or status.started):
                leads = status is not None and status.phase is MovePhase.IN_FLIGHT and status.leader_movement
                self.enter(index, tp, leads)
            for broker in state.adding:
                size = share.sizes.get(tp, 0) if share else 0
                lacking = 0 if broker in state.isr else max(0, size - on_disk.get((tp, broker), 0))
                self.copy(index, state.leader, broker, lacking)

    def enter(self, index, tp, leads):
        for owner in {index, "all"} - {None}:
            self.used[owner, "partitions"] += 1
            self.used[owner, "leaders"] += leads
        self.used["internal"] += leads and tp.internal

    def load(self, share, tp):
        """Bytes in flight at the busiest end of a copy, at its busiest destination, and at its source."""
        into = max(self.used["bytes into", broker] for broker in copies_of(share.statuses[tp]))
        out_of = self.used["bytes out of", self.cluster.partitions[tp].leader]
        return max(into, out_of), into, out_of

    def copy(self, index, source, broker, size):
        for owner in {index, "all"} - {None}:
            self.used[owner, "copies"] += 1
        self.used["into", broker] += 1
        self.used["out of", source] += 1
        self.used["bytes into", broker] += size + 1  # a copy without a size counts as well
        self.used["bytes out of", source] += size + 1
        if broker in self.free:
            self.free[broker] -= size

    def send(self, index, share, tp):
        status = share.statuses[tp]
        self.enter(index, tp, status.leader_movement)
        for broker in copies_of(status):
            self.copy(index, self.cluster.partitions[tp].leader, broker, share.sizes.get(tp, 0))

    def forbids(self, index, share, tp):
        status, limits, size = share.statuses[tp], share.limits, share.sizes.get(tp, 0)
        copies, source = copies_of(status), self.cluster.partitions[tp].leader
        found = []
        for owner, caps in ((index, limits), ("all", self.ceilings)):
            if (p := caps.parallel_partitions) is not None and self.used[owner, "partitions"] + 1 > p:
                found.append("partitions")
            most = caps.parallel_leader_movements
            if status.leader_movement and most is not None and self.used[owner, "leaders"] + 1 > most:
                found.append("leaders")
            found += self.over(caps.max_concurrent_replicas, (owner, "copies"), len(copies))
        if status.leader_movement and tp.internal and self.used["internal"]:
            found.append("internal leaders")
        found += self.over(limits.per_broker_out, ("out of", source), len(copies))
        for broker in copies:
            found += self.over(limits.per_broker_in, ("into", broker), 1)
            if size > self.free.get(broker, size):
                found.append("disk")
        return found

    def over(self, cap, key, more):
        alone = self.used[key] == 0
        return [key] if more and cap is not None and not alone and self.used[key] + more > cap else []


def copies_of(status):
    return status.call.until_in_sync if isinstance(status.call, Alter) else ()


def class_of(share, tp):
    status = share.statuses[tp]
    return status.started, tp.internal, status.leader_movement


def largest_of_pipes(share, cluster, tps):
    """The copies that may come next: for each pair of brokers the largest one, ties by name."""
    heads = {}
    for tp in sorted(tps, key=lambda tp: (-share.sizes.get(tp, 0), tp)):
        copies = copies_of(share.statuses[tp])
        heads.setdefault((cluster.partitions[tp].leader, copies[0], len(copies)), tp)
    return heads.values()


def what_is_sent(orders):
    return [*orders.elections, *orders.alters]


class TestAnyCluster:
    @given(clusters())
    def test_no_cap_is_ever_exceeded(self, given_):
        """Recounted by the rules, submission by submission, every cap admits each one."""
        shares, cluster, ceilings, free, on_disk = given_
        books = Books(shares, cluster, ceilings, free, on_disk)
        for index, (share, orders) in enumerate(zip(shares, schedule(*given_), strict=True)):
            for tp in what_is_sent(orders):
                assert not books.forbids(index, share, tp), tp
                books.send(index, share, tp)

    @given(clusters())
    def test_nothing_that_fits_is_left_out(self, given_):
        """Work conserving: in the end every ready partition that was not sent is held back by a cap."""
        shares, cluster, ceilings, free, on_disk = given_
        chosen = schedule(*given_)
        books = Books(shares, cluster, ceilings, free, on_disk)
        for index, (share, orders) in enumerate(zip(shares, chosen, strict=True)):
            for tp in what_is_sent(orders):
                books.send(index, share, tp)
            ready = {tp for tp, v in share.statuses.items() if v.phase is MovePhase.READY and v.call is not None}
            for tp in ready - set(what_is_sent(orders)):
                assert books.forbids(index, share, tp), tp

    @given(clusters())
    def test_no_broker_is_piled_upon(self, given_):
        """Among the largest copies per pair of brokers, each one sent has the fewest bytes in flight at its ends."""
        shares, cluster, ceilings, free, on_disk = given_
        books = Books(shares, cluster, ceilings, free, on_disk)
        for index, (share, orders) in enumerate(zip(shares, schedule(*given_), strict=True)):
            ready = {tp for tp, v in share.statuses.items() if v.phase is MovePhase.READY and copies_of(v)}
            for tp in what_is_sent(orders):
                if tp in ready:
                    rivals = [r for r in ready if class_of(share, r) == class_of(share, tp)]
                    fitting = [r for r in rivals if not books.forbids(index, share, r)]
                    heads = largest_of_pipes(share, cluster, fitting)
                    assert tp in heads
                    assert books.load(share, tp) == min(books.load(share, r) for r in heads)
                books.send(index, share, tp)
                ready -= {tp}

    @given(clusters())
    def test_what_is_sent_is_what_the_statuses_say(self, given_):
        """The calls as judged, none twice, every cancel, and nothing else."""
        for share, orders in zip(given_[0], schedule(*given_), strict=True):
            calls = {tp: v.call for tp, v in share.statuses.items() if v.phase is MovePhase.READY}
            assert orders.cancels == tuple(sorted(tp for tp, v in share.statuses.items() if v.cancel))
            assert all(calls[tp].replicas == replicas for tp, replicas in orders.alters.items())
            assert all(isinstance(calls[tp], Elect) for tp in orders.elections)
            assert len(set(what_is_sent(orders))) == len(what_is_sent(orders))

    @given(clusters())
    def test_who_is_named_for_lack_of_room_has_none(self, given_):
        """DiskFull is reported only for a partition that is not sent, with a broker that cannot hold the copy."""
        shares, cluster, ceilings, free, on_disk = given_
        chosen = schedule(*given_)
        books = Books(shares, cluster, ceilings, free, on_disk)
        for index, (share, orders) in enumerate(zip(shares, chosen, strict=True)):
            for tp in what_is_sent(orders):
                books.send(index, share, tp)
            assert not set(orders.no_room) & set(what_is_sent(orders))
            for tp, broker in orders.no_room.items():
                assert broker in copies_of(share.statuses[tp])
                assert share.sizes.get(tp, 0) > books.free[broker]

    @given(clusters(), st.randoms(use_true_random=False))
    def test_the_answer_does_not_depend_on_the_order_of_listing(self, given_, rnd: random.Random):
        """Deterministic: the same cluster gives the same calls in the same order."""
        shares, cluster, ceilings, free, on_disk = given_

        def shuffled(mapping):
            rows = list(mapping.items())
            rnd.shuffle(rows)
            return dict(rows)

        others = [RebalanceShare(shuffled(s.statuses), shuffled(s.sizes), s.limits) for s in shares]
        listed = ClusterState("c", cluster.brokers, shuffled(cluster.partitions))
        once = schedule(*given_)
        again = schedule(others, listed, ceilings, shuffled(free), shuffled(on_disk))
        assert again == once
        assert [list(orders.alters) for orders in again] == [list(orders.alters) for orders in once]

    @given(clusters(), st.sampled_from([1, 2, 3]))
    def test_to_look_at_the_first_of_each_pipe_makes_no_difference(self, given_, depth):
        """Only the first calls of each pipe are looked at where these decide; the choice is that from all calls."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kafka_rebalance.execution.schedule._FIRST_LOOK", 10**9)
            everything = schedule(*given_)
            patch.setattr("kafka_rebalance.execution.schedule._FIRST_LOOK", depth)
            few = schedule(*given_)
        assert few == everything
        assert [list(orders.alters) for orders in few] == [list(orders.alters) for orders in everything]

    @given(clusters())
    def test_nobody_takes_from_who_comes_first(self, given_):
        """The calls of the first share do not depend on ready partitions of later shares."""
        shares, cluster, ceilings, free, on_disk = given_
        nothing_ready = [
            RebalanceShare(
                {tp: v for tp, v in s.statuses.items() if v.phase is not MovePhase.READY or v.cancel}, s.sizes, s.limits
            )
            for s in shares[1:]
        ]
        alone = schedule([shares[0], *nothing_ready], cluster, ceilings, free, on_disk)
        assert alone[0] == schedule(*given_)[0]
