"""The order in which a Job goes through the clusters of a lake: first the one that it began with longest ago.

    turns/<job>/cluster=<id>/began    empty; written before the Job begins with the cluster
    turns/<job>/cluster=<id>/place    empty; its time is the place of the cluster, in `KeptPlaces`

The samples of a cluster may be such that the Job is killed, or reaches its deadline. The next run then begins with the
clusters behind it. A cluster that the Job has never begun with waits since there was something to do for it: servers
may claim new cluster ids all the time, which must not all come first.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.sample_manifests import days, names_of, stamp_of
from kafka_rebalance.storage.locations import path_segment

TURNS = "turns"
_BEGAN = "began"
_PLACE = "place"
LONG = timedelta(minutes=5)
"""A cluster with which a Job with kept places is busy for longer gets the last place."""
_NEVER = datetime.min.replace(tzinfo=UTC)


def _first_sample(lake: Lake, cluster_id: str) -> datetime:
    """When the first file of samples that is there was written."""
    for day in days(lake, cluster_id):
        for name in names_of(lake, cluster_id, day):
            return stamp_of(name)
    return _NEVER


@dataclass(frozen=True, slots=True)
class JobTurns:
    """Of one job, for example `windows`.

    ``waits_since`` says of a cluster with which the Job has never begun since when there is something to do for it.
    """

    lake: Lake
    job: str
    waits_since: Callable[[Lake, str], datetime] = _first_sample

    def in_order(self, clusters: Iterable[str]) -> list[str]:
        """The clusters in the order in which it is their turn; by id if that is the same."""
        latest: dict[str, datetime] = {}
        for name, at in self.lake.files(f"{TURNS}/{self.job}"):
            directory = name.split("/")[-2]
            latest[directory] = max(at, latest.get(directory, at))

        def waits(cluster_id: str) -> datetime:
            found = latest.get(f"cluster={path_segment(cluster_id)}")
            return found if found is not None else self.waits_since(self.lake, cluster_id)

        return sorted(clusters, key=lambda cluster_id: (waits(cluster_id), cluster_id))

    def begin(self, cluster_id: str) -> None:
        """The Job begins with this cluster, which is last from now on. Raises OSError of the store."""
        self.lake.write(self._mark(cluster_id, _BEGAN), b"")

    def _mark(self, cluster_id: str, name: str) -> str:
        return f"{TURNS}/{self.job}/cluster={path_segment(cluster_id)}/{name}"


@dataclass(frozen=True, slots=True)
class KeptPlaces(JobTurns):
    """Turns in which a cluster keeps its place until the Job is killed while it is at the cluster, or takes long there.

    Then the cluster is last, and stays behind the others. So each cluster can keep the Job from another one only once,
    however many of them kill it or leave it little time.
    """

    def taken(self, clusters: Iterable[str]) -> list[str]:
        """The clusters in order, all of which have a place from now on. Raises OSError of the store."""
        ordered = self.in_order(clusters)
        for cluster_id in ordered:
            began, place = (self._mark(cluster_id, name) for name in (_BEGAN, _PLACE))
            if self.lake.written_at(began) or not self.lake.written_at(place):
                self.lake.write(place, b"")
                self.lake.delete(began)
        return ordered

    def end(self, cluster_id: str) -> None:
        """The Job was not killed while it was at this cluster. Raises OSError of the store."""
        mark = self._mark(cluster_id, _BEGAN)
        began = self.lake.written_at(mark)
        if began is not None and datetime.now(UTC) - began > LONG:
            self.lake.write(self._mark(cluster_id, _PLACE), b"")
        self.lake.delete(mark)
