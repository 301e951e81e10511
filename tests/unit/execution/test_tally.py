"""What is kept of the partitions of a run between rounds adds up to what counting all of them gives."""

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.counted_progress import bytes_left, measure

from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.step_count import steps_completed
from kafka_rebalance.execution.tally import Tally
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

LISTS = st.lists(st.sampled_from([BrokerId(b) for b in range(1, 6)]), min_size=1, max_size=4, unique=True).map(tuple)
TPS = [TopicPartition("t", number) for number in range(4)]


@st.composite
def moves(draw):
    lists = [(draw(LISTS), draw(LISTS)) for _ in TPS]
    sizes = [draw(st.integers(0, 1000)) for _ in TPS]
    elects = draw(st.booleans())
    return [
        PartitionMove(tp, "", origin, origin, target, size, elects=elects)
        for tp, (origin, target), size in zip(TPS, lists, sizes, strict=True)
    ]


@st.composite
def partition_states(draw, move):
    tp, replicas = move.tp, draw(st.one_of(LISTS, st.sampled_from([move.origin, move.target])))
    isr = frozenset(draw(st.sets(st.sampled_from(replicas))))
    adding = draw(st.sets(st.sampled_from(replicas))) - {replicas[0]}
    leader = draw(st.one_of(st.none(), st.sampled_from(replicas)))
    return PartitionState(tp, "", replicas, isr, leader, tuple(sorted(adding)))


STATUSES = st.builds(
    PartitionStatus, st.sampled_from(MovePhase), st.sampled_from(["", Reason.FOREIGN_REASSIGNMENT, Reason.DRIFTED])
)
SIZES = st.dictionaries(
    st.tuples(st.sampled_from(TPS), st.sampled_from([BrokerId(b) for b in range(6)])), st.integers()
)


def without_none(found):
    return {broker: size for broker, size in found.items() if size}


@given(st.data(), moves(), st.sampled_from(Direction), st.integers(1, 3), SIZES)
def test_the_sums_are_those_of_all_partitions(data, planned, direction, r, on_disk):
    """After any number of changes of partitions and statuses; one that is gone counts as such."""
    statuses, states, tally = {}, {}, None
    for _ in range(4):
        changed = data.draw(st.sets(st.sampled_from(TPS))) if tally else TPS
        statuses |= {tp: data.draw(STATUSES) for tp in changed}
        states = {**states, **{move.tp: data.draw(partition_states(move)) for move in planned if move.tp in changed}}
        states = {tp: state for tp, state in states.items() if tp not in changed or data.draw(st.booleans())}
        cluster, judged = ClusterState("c", {}, states), dict(statuses)
        again = [move for move in planned if move.tp in changed]
        tally = tally.updated(again, judged, states) if tally else Tally.of(planned, judged, states, direction, r)
        sizes = {key: abs(size) for key, size in on_disk.items()}
        phases = {p: sum(s.phase is p for s in judged.values()) for p in MovePhase}
        steps = steps_completed(planned, judged, cluster, direction, r)
        expected = measure(planned, judged, cluster, sizes, direction)
        assert tally.progress(phases, sizes) == (expected, steps)
        kept, counted = tally.bytes_left(sizes), bytes_left(planned, judged, cluster, sizes, direction)
        assert [without_none(side) for side in kept] == [without_none(side) for side in counted]
