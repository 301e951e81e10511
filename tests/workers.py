"""Which pytest worker runs what, so that two cores are busy from the first minute to the last.

- The first workers are lanes: each has Kafka brokers and an operator of its own, and takes one class of end-to-end
  tests after the other. They mostly wait.
- The others run what has servers of its own, and then what only computes; from then on with a lower priority than the
  servers that the lanes wait for. Lanes help them when there is no end-to-end test left.
"""

from collections.abc import Iterator
from enum import Enum, auto
from functools import cache

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

LANES = 3
_OWN_SERVERS = ("tests/contract", "tests/kube", "tests/chart/test_install.py", "e2e/test_pipeline.py")
"""They wait for servers, so they run with the usual priority; what takes longest is first."""
_LOAD = "tests/property/test_planning_load.py"
_TOGETHER = {"tests/pipeline": "tests/pipeline", _LOAD: _LOAD, "tests/unit/planning/load": _LOAD}
"""Units of several files: one Spark session serves the one; the other compiles the search once. Two processes that
compile at once may mix up functions in numba's cache."""


class Kind(Enum):
    """The needs of a unit of work, in the order in which units are assigned."""

    LANE = auto()
    OWN_SERVERS = auto()
    NOTHING = auto()


def unit(nodeid: str) -> tuple[Kind, str]:
    """The needs of the test, and the name of its unit."""
    path, _, rest = nodeid.partition("::")
    return _unit(path, rest.partition("::")[0])


@cache
def _unit(path: str, name: str) -> tuple[Kind, str]:
    units = [(Kind.OWN_SERVERS, place, place) for place in _OWN_SERVERS]
    units += [(Kind.NOTHING, place, together) for place, together in _TOGETHER.items()]
    for kind, place, together in units:
        if _is_in(path, place):
            return kind, together
    if path.rpartition("/")[0] == "e2e":
        return Kind.LANE, f"{path}::{name}"
    return Kind.NOTHING, path


def position(nodeid: str) -> tuple[int, int]:
    """For sorting: by kind, and of what needs nothing the properties first, which compute the longest."""
    return _position(*unit(nodeid))


@cache
def _position(kind: Kind, name: str) -> tuple[int, int]:
    places = (*_OWN_SERVERS, "tests/pipeline", "tests/property")
    at = next((at for at, place in enumerate(places) if _is_in(name, place)), len(places))
    return kind.value, at


def _is_in(path: str, place: str) -> bool:
    """Whether it is the place, or a file in it. Every worker asks for each test, so without slow ``PurePosixPath``."""
    return path == place or path.startswith(f"{place}/")


def is_lane(worker: str) -> bool:
    """Whether the worker of this id (gw0, gw1, ...) has end-to-end tests."""
    return int(worker.removeprefix("gw")) < LANES


class Scheduling(LoadScopeScheduling):
    """Hands out units; a worker has one test more than it is running."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)[1]

    def _reschedule(self, node: WorkerController) -> None:
        if node.shutting_down or self._pending_of(self.assigned_work[node]) > 1:
            return
        if any(kind in self._kinds(node) for kind in self._left()):
            self._assign_work_unit(node)
        else:
            node.shutdown()

    def _assign_work_unit(self, node: WorkerController) -> None:
        kinds = self._kinds(node)
        chosen = min((kind for kind in self._left() if kind in kinds), key=lambda kind: kind.value, default=None)
        if chosen is None:
            return
        name = next(name for name, work in self.workqueue.items() if unit(next(iter(work)))[0] is chosen)
        self.workqueue.move_to_end(name, last=False)
        super()._assign_work_unit(node)

    def _left(self) -> Iterator[Kind]:
        return (unit(next(iter(work)))[0] for work in self.workqueue.values())

    def _kinds(self, node: WorkerController) -> set[Kind]:
        """What this worker may be given: xdist starts as many workers as there are units at most, perhaps no lane."""
        no_lanes = not any(is_lane(other.gateway.id) for other in self.nodes)
        return set(Kind) if no_lanes or is_lane(node.gateway.id) else {Kind.OWN_SERVERS, Kind.NOTHING}
