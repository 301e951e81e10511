"""The runs that may have started in another cluster, as far as this process has found out.

A record that was read before must not be saved without that. In memory only: after a restart, all records are read.
"""

from kafka_rebalance.model.run import Run


class RunDoubts:
    """What is known of runs, whatever is on record of them."""

    def __init__(self) -> None:
        self._unproved: dict[str, str] = {}
        """The run ids, by uid of the resource."""
        self._was_unproved: dict[str, str] = {}
        """The clusters, by uid: later runs of the resource in this cluster have its origins or its cordons."""

    def add(self, run: Run, *, later: bool) -> None:
        """The run may have started elsewhere; ``later``: only for the next owner of its cluster."""
        self._was_unproved[run.uid] = run.cluster_id
        if not later:
            self._unproved[run.uid] = run.run_id

    def go_on(self, uid: str) -> None:
        """The run is continued: it is no longer ``unproved``, but was."""
        self._unproved.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The resource has no run any more."""
        self._unproved.pop(uid, None)
        self._was_unproved.pop(uid, None)

    def applied_to(self, run: Run) -> Run:
        """The run as it has to be on record."""
        if self._unproved.get(run.uid) == run.run_id:
            return run.doubted
        return run.to_doubt_later if self._was_unproved.get(run.uid) == run.cluster_id else run
