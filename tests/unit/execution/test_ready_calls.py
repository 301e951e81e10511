"""The queues of ready calls are the same whether they are updated or made from all statuses."""

from hypothesis import given
from hypothesis import strategies as st

from kafka_rebalance.execution.partition_status import MovePhase, PartitionStatus
from kafka_rebalance.execution.ready_calls import Pipe, ReadyCalls
from kafka_rebalance.execution.steps import Alter, Elect
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of

TPS = [TopicPartition(topic, number) for topic in ("__t", "t") for number in range(20)]
CALLS = [None, Elect(BrokerId(1)), Alter(replicas_of(1, 2, 3), replicas_of(3)), Alter(replicas_of(1, 2))]
STATUSES = st.builds(
    PartitionStatus,
    st.sampled_from([MovePhase.READY, MovePhase.READY, MovePhase.READY, MovePhase.DONE]),
    call=st.sampled_from(CALLS),
    started=st.booleans(),
    leader_movement=st.booleans(),
    pausable=st.booleans(),
    to_rest=st.sampled_from([None, Alter(replicas_of(1, 2))]),
)


def state(tp, leader):
    return PartitionState(tp, "", replicas_of(1, 2), frozenset(replicas_of(1, 2)), BrokerId(leader))


@given(st.data())
def test_updated_as_made_anew(data):
    """After changes of statuses and leaders, one at a time and many at once."""
    sizes = {tp: data.draw(st.integers(0, 3)) for tp in TPS[::2]}
    statuses = {tp: data.draw(STATUSES) for tp in TPS}
    states = {tp: state(tp, 1) for tp in TPS}
    found = ReadyCalls.of(statuses, states, sizes)
    for _ in range(5):
        changed = data.draw(st.sets(st.sampled_from(TPS), max_size=data.draw(st.sampled_from([1, 40]))))
        statuses |= {tp: data.draw(STATUSES) for tp in changed}
        states |= {tp: state(tp, data.draw(st.sampled_from([1, 2]))) for tp in changed}
        found = found.updated(changed, statuses, states)
        anew = ReadyCalls.of(statuses, states, sizes)
        assert (found.queues, found.of_pause()) == (anew.queues, anew.of_pause())


def test_the_largest_of_a_pipe_is_first():
    """Then by name; a leader that is not known has a pipe too."""
    copy = PartitionStatus(MovePhase.READY, call=CALLS[2])
    found = ReadyCalls.of(dict.fromkeys(TPS[20:24], copy), {}, {TPS[22]: 5, TPS[21]: 5})
    ((queue, waiting),) = found.queues.items()
    assert (queue.pipe, [tp.partition for tp in waiting]) == (Pipe(None, BrokerId(3), 1), [1, 2, 0, 3])


def test_a_pause_leaves_what_leads_to_a_rest_point():
    """The others are not lost, only held back."""
    held, free = (PartitionStatus(MovePhase.READY, call=CALLS[3], pausable=pausable) for pausable in (True, False))
    found = ReadyCalls.of({TPS[0]: held, TPS[1]: free}, {}, {})
    assert [*found.of_pause().queues.values()] == [(TPS[1],)]
    assert len(found.queues) == 2


def test_a_pause_has_calls_of_its_own():
    """They only drop replicas, where the next step would copy first."""
    copy = PartitionStatus(MovePhase.READY, call=CALLS[2], started=True, pausable=True, to_rest=CALLS[3])
    found = ReadyCalls.of({TPS[0]: copy, TPS[21]: copy, TPS[22]: copy}, {}, {TPS[22]: 5})
    paused = found.of_pause().queues
    assert sorted(paused.values()) == [(TPS[0],), (TPS[22], TPS[21])]
    assert all(queue.pipe is None and not queue.pausable for queue in paused)
