"""The order in which a Job goes through the clusters of a lake: first the one that it began with longest ago.

    turns/<job>/cluster=<id>/began    empty; written before the Job begins with the cluster

The samples of a cluster may be such that the Job is killed, or reaches its deadline. The next run then begins with the
clusters behind it. A cluster that the Job has never begun with waits since its first sample: servers may claim new
cluster ids all the time, which must not all come first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import days, names_of, stamp_of
from kafka_rebalance.storage.locations import path_segment

TURNS = "turns"
_BEGAN = "began"
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class JobTurns:
    """Of one job, for example `windows`."""

    lake: Lake
    job: str

    def in_order(self, clusters: Iterable[str]) -> list[str]:
        """The clusters in the order in which it is their turn; by id if that is the same."""
        began = {name.split("/")[-2]: at for name, at in self.lake.files(f"{TURNS}/{self.job}")}

        def waits_since(cluster_id: str) -> datetime:
            found = began.get(f"cluster={path_segment(cluster_id)}")
            return found if found is not None else _first_sample(self.lake, cluster_id)

        return sorted(clusters, key=lambda cluster_id: (waits_since(cluster_id), cluster_id))

    def begin(self, cluster_id: str) -> None:
        """The Job begins with this cluster, which is last from now on. Raises OSError of the store."""
        self.lake.write(f"{TURNS}/{self.job}/cluster={path_segment(cluster_id)}/{_BEGAN}", b"")


def _first_sample(lake: Lake, cluster_id: str) -> datetime:
    """When the first file of samples that is there was written."""
    for day in days(lake, cluster_id):
        for name in names_of(lake, cluster_id, day):
            return stamp_of(name)
    return _NEVER
