"""Which pytest worker runs what, so that two cores are busy from the first minute to the last.

- The first worker owns the API server. It runs what changes the server for everybody (the chart, the operator's own
  tests on it), before any end-to-end test begins.
- The first workers are lanes: each has Kafka brokers and an operator of its own, and takes one class of end-to-end
  tests after the other. They mostly wait.
- The others compute, with a lower priority than the servers that somebody waits for. Lanes help them as long, and as
  soon, as there is no end-to-end test to run.
"""

from collections.abc import Iterator
from enum import Enum, auto
from pathlib import PurePosixPath

from e2e.bench.sharing import OWNER
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

LANES = 4
_OWN_SERVERS = ("tests/contract", "e2e/test_pipeline.py")
"""They time what servers do, so they run on workers of the usual priority; what takes longest is first."""
_TOGETHER = "tests/pipeline"
"""One Spark session serves them."""
_API_SERVER = ("tests/chart/test_install.py", "tests/kube")


class Kind(Enum):
    """What a unit of work needs, in the order in which it is handed out."""

    API_SERVER = auto()
    LANE = auto()
    OWN_SERVERS = auto()
    NOTHING = auto()


def unit(nodeid: str) -> tuple[Kind, str]:
    """What the test needs, and the name of the unit that it is handed out in."""
    path, _, rest = nodeid.partition("::")
    for kind, places in (
        (Kind.API_SERVER, _API_SERVER),
        (Kind.OWN_SERVERS, _OWN_SERVERS),
        (Kind.NOTHING, (_TOGETHER,)),
    ):
        for place in places:
            if PurePosixPath(path).is_relative_to(place):
                return kind, "the API server" if kind is Kind.API_SERVER else place
    if PurePosixPath(path).parent == PurePosixPath("e2e"):
        return Kind.LANE, f"{path}::{rest.partition('::')[0]}"
    return Kind.NOTHING, path


def position(nodeid: str) -> tuple[int, int]:
    """For sorting: by kind, and of what needs nothing the properties first, which compute the longest."""
    kind, name = unit(nodeid)
    places = (*_API_SERVER, *_OWN_SERVERS, _TOGETHER, "tests/property")
    at = next((at for at, place in enumerate(places) if PurePosixPath(name).is_relative_to(place)), len(places))
    if kind is Kind.API_SERVER:
        at = 0 if nodeid.startswith(_API_SERVER[0]) else 1
    return kind.value, at


def is_lane(worker: str) -> bool:
    """Whether the worker of this id (gw0, gw1, ...) has end-to-end tests."""
    return int(worker.removeprefix("gw")) < LANES


class Scheduling(LoadScopeScheduling):
    """Hands out units; a worker has one test more than it is running."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)[1]

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        for other in self.nodes:  # which may have waited for just this test
            self._reschedule(other)

    def _reschedule(self, node: WorkerController) -> None:
        if node.shutting_down or self._pending_of(self.assigned_work[node]) > 1:
            return
        if any(kind in self._ever(node) for kind in self._left()):
            self._assign_work_unit(node)
        else:
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        now = self._now(node)
        chosen = min((kind for kind in self._left() if kind in now), key=lambda kind: kind.value, default=None)
        if chosen is None:
            return
        name = next(name for name, work in self.workqueue.items() if unit(next(iter(work)))[0] is chosen)
        self.workqueue.move_to_end(name, last=False)
        super()._assign_work_unit(node)

    def _left(self) -> Iterator[Kind]:
        return (unit(next(iter(work)))[0] for work in self.workqueue.values())

    def _ever(self, node: WorkerController) -> set[Kind]:
        """What this worker may be given some time."""
        kinds = {Kind.NOTHING}
        if is_lane(node.gateway.id):
            kinds |= {Kind.LANE, Kind.OWN_SERVERS}
        if node.gateway.id == OWNER:
            kinds.add(Kind.API_SERVER)
        return kinds

    def _now(self, node: WorkerController) -> set[Kind]:
        """What it may be given now: others than the owner wait until nothing changes the API server any more."""
        kinds = self._ever(node)
        return kinds if node.gateway.id == OWNER or self._api_server_is_free() else kinds - {Kind.LANE}

    def _api_server_is_free(self) -> bool:
        given = (work for units in self.assigned_work.values() for work in units.values())
        waiting = (work for work in self.workqueue.values())
        return not any(
            unit(nodeid)[0] is Kind.API_SERVER and not done
            for works in (given, waiting)
            for work in works
            for nodeid, done in work.items()
        )
