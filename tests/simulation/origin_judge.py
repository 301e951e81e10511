"""The rule of the judge for origins: the first call of a run for a partition follows the record of what it is then."""


class OriginJudge:
    """``judge``: it knows what others have moved, and what was taken over."""

    def __init__(self, judge):
        self.judge = judge

    def starts(self, what, run):
        """A run that follows one that was taken over has the origins of both on record before its first call.

        A partition that others or another rebalance have moved since is theirs.
        """
        recorded = self.judge._origins(run.uid, run.run_id)
        for (tp, topic_id), before in self.judge.inherited.get(run.uid, {}).items():
            state, origin = self.judge.world.kafka.states.get(tp), recorded.get(tp)
            moved = tp in self.judge.foreign or self.judge.log_dirs.by_another(tp, run.uid)
            if run.undo or state is None or state.topic_id != topic_id or moved:
                continue
            if origin is None or origin.replicas != before:
                there = "nothing" if origin is None else list(origin.replicas)
                known = f"{list(before)} before the run that was taken over, recorded: {there}"
                self.judge.breach(f"{what}: {tp} was {known}")

    def first_call(self, what, tp, seen, run, origin, since):
        """A rollback leads back to what the partition was at this call, not to what it was when it was planned.

        What others have changed before is theirs, unless they did ``since`` the last rounds began. If all replicas of
        the origin are still there, the change may be that of an earlier call without an answer.
        """
        lately = self.judge.foreign.get(tp, float("-inf")) >= since
        if run.undo or self.judge.inherited.get(run.uid) or lately or set(origin.replicas) <= set(seen.replicas):
            return
        self.judge.breach(
            f"{what}: the first call, with the origin {list(origin.replicas)} on record and {list(seen.replicas)} read"
        )
