"""What a resource inherits of runs that it takes over, which were one after the other. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kafka_rebalance.execution.first_call import reordered_instead
from kafka_rebalance.execution.partition_move import PartitionMove, changed_instead, drift
from kafka_rebalance.model.plan import LogDirMove, joined_log_dirs
from kafka_rebalance.model.run import Origin, RunOutcome
from kafka_rebalance.model.topology import PartitionState, ReplicaKey, TopicPartition
from kafka_rebalance.reconcile.state.record import LoadedRun


@dataclass(frozen=True, slots=True)
class Inheritance:
    """The ``origins`` to which a deletion leads back, and what the runs have moved.

    ``moves``: of each partition that of the last run that has sent it something. ``log_dirs``: the replicas that the
    runs have moved between log dirs. ``left``: the partitions of runs that may have ended with copies in flight. What
    is in flight of the others was begun by others.
    """

    origins: Mapping[TopicPartition, Origin] = field(default_factory=dict)
    moves: Mapping[TopicPartition, PartitionMove] = field(default_factory=dict)
    log_dirs: Mapping[ReplicaKey, LogDirMove] = field(default_factory=dict)
    left: frozenset[TopicPartition] = frozenset()

    def followed_by(self, origins: Mapping[TopicPartition, Origin], run: LoadedRun | None) -> "Inheritance":
        """With one more run and its ``origins``. ``run``: as for a rollback; None: someone has deleted its plan.

        The first origin of a partition counts, unless others have moved the partition between the runs.
        """
        both = origins.keys() & self.origins.keys()
        first = {tp: self._first(origins[tp]) for tp in both}
        joined = {**self.origins, **origins, **first}
        if run is None:
            return replace(self, origins=joined, left=self.left.union(origins))
        left = self.left.union(origins) if run.run.outcome is RunOutcome.ABANDONED else self.left
        dirs = joined_log_dirs(self.log_dirs, run.log_dirs)
        return Inheritance(joined, {**self.moves, **run.move_of}, dirs, left)

    def _first(self, newer: Origin) -> Origin:
        """The origin of a partition that these runs and a newer one have moved.

        ``newer`` shows what the partition was before the newer run sent its first call: by then, others may have moved
        it out of reach of the runs before, or some of its replicas to other log dirs, or have given it another order.
        """
        older, move = self.origins[newer.tp], self.moves.get(newer.tp)
        if older.topic_id != newer.topic_id:
            return newer
        found = PartitionState(newer.tp, newer.topic_id, newer.replicas, frozenset(newer.replicas), newer.leader)
        if move is not None and (changed_instead(move, found) or drift(move, found.replicas)):
            return newer
        if reordered_instead(older.replicas, older.first_call, newer.replicas):
            older = older.reordered(newer.replicas, newer.leader)
        dirs = newer.log_dirs or ()
        theirs = {b for b, at in dirs if (was := self.log_dirs.get((newer.tp, b))) is not None and was.excludes(at)}
        older = older.without_log_dirs(theirs).with_log_dirs(dirs)
        # If the first call of the older run was not carried out, the next one is that of the newer run.
        return replace(older, first_call=newer.first_call if newer.replicas == older.replicas else ())
