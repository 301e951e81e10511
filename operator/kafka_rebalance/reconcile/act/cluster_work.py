"""The work of the operator in a Kafka cluster that has not ended: until then the cluster stays with its owner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.model.run import Run


@dataclass(frozen=True, slots=True)
class Work:
    """Unfinished work of the operator in a cluster. ``throttled``: the ledger is not empty, or cannot be read.

    ``undoable``: an undo may open a run again. That alone is no unfinished work.
    """

    open_runs: tuple[Run, ...]
    throttled: bool
    undoable: bool = False

    def __bool__(self) -> bool:
        return bool(self.open_runs) or self.throttled

    def keeps(self, owner: Owner, named_by: Callable[[str], Owner | None] = lambda _: None) -> bool:
        """Whether this keeps the owner from the cluster, or in it.

        Runs that may have started at a server that only claimed its id do not keep a KafkaConnection. Runs of their own
        resources do not keep inline connections out. ``named_by``: the owner that the resource of a run names.
        """
        if owner.connection:
            return self.throttled or any(not run.unproved for run in self.open_runs)
        return self.throttled or any(named_by(run.uid) != owner for run in self.open_runs)

    def __str__(self) -> str:
        names = ", ".join(f"{run.namespace}/{run.name}" for run in self.open_runs[:3])
        more = f" and {len(self.open_runs) - 3} more" if len(self.open_runs) > 3 else ""
        return f"runs are open ({names}{more})" if self.open_runs else "throttles or cordons are in place"


class Unfinished(NamedTuple):
    """Work that is left in a cluster that nothing names. ``way_out``: advice if the cluster cannot be reached."""

    binding: Binding
    work: str
    way_out: str

    @property
    def on_record(self) -> str:
        """For the log, if the connection on record is used."""
        return self._said(
            f"the operator connects as {self.binding.owner} did last, with the same Secrets, and restores them"
        )

    @property
    def not_on_record(self) -> str:
        """For the log, if no connection is on record, or it cannot be read."""
        return self._said("how to connect is not on record, so a resource has to name the cluster again")

    def _said(self, then: str) -> str:
        return (
            f"cluster {self.binding.cluster_id}: {self.work}, and no resource names it any more: {then}. If that is "
            f"not possible any more, {self.way_out}"
        )
