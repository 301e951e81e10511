"""Whether Kafka has carried out the first call of a run for a partition, as far as the partition shows it. Pure.

The origin is recorded before that call, and the operator may be killed in between, or get no answer. Until a second
call of the partition follows, the record counts only as long as this module says so.
"""

from kafka_rebalance.model.topology import PartitionState, Replicas


def reordered_instead(recorded: Replicas, call: Replicas, replicas: Replicas) -> bool:
    """Whether others have given the list, which is at rest, another order, and the run has not changed it at all.

    Then the call is the recorded list, as for an election and for moves between log dirs.
    """
    return call == recorded != replicas and set(replicas) == set(recorded)


def carried_out(recorded: Replicas, call: Replicas, state: PartitionState) -> bool | None:
    """Whether the call was carried out on the recorded list; None: another tool changed the partition instead.

    Carried out means: it is in flight, it is complete, or it was cancelled since. Where Kafka shows all replicas of
    both lists, the reassignment may just have begun or ended.
    """
    if state.in_flight:
        listed = tuple(b for b in state.replicas if b not in state.removing)
        return True if listed == call else None
    if state.replicas == recorded:
        return False
    cancelled = (*(b for b in call if b in recorded), *(b for b in recorded if b not in call))
    if state.replicas in {call, cancelled} or set(state.replicas) == {*recorded, *call}:
        return True
    return None
