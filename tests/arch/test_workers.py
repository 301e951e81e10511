"""The scheduling of tests on workers: each test is run once, end-to-end tests in lanes only, and no deadlock."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from tests.workers import LANES, Kind, Scheduling, position, unit

CHART = "tests/chart/test_install.py::TestInstall::test_a"
KUBE = ["tests/kube/test_lease.py::TestLease::test_a", "tests/kube/test_lease.py::TestLease::test_b"]
IN_LANES = [f"e2e/test_operator.py::Test{name}::test_{at}" for name in "ABCDEF" for at in range(2)]
CONTRACT = [f"tests/contract/test_cancel.py::TestCancel::test_{at}" for at in range(4)]
UNITS = [f"tests/unit/test_{name}.py::test_{at}" for name in "abcd" for at in range(3)]


@dataclass(eq=False)
class Worker:
    """Like xdist's worker: it runs a test once it knows the next one, or that there is none."""

    name: str
    queue: list[int] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> SimpleNamespace:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, indices: list[int]) -> None:
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def run(tests: list[str], count: int, *, last_first: bool = False) -> list[tuple[str, str]]:
    """Which worker ran which test, in order; asserts that every test ran. Workers may be ready in any order."""
    tests = sorted(tests, key=position)
    config = SimpleNamespace(getvalue=lambda _: ["popen"] * count, option=SimpleNamespace(loadscopereorder=False))
    scheduling = Scheduling(config, SimpleNamespace(loadscopesched=lambda *_: None))
    workers = [Worker(f"gw{at}") for at in range(count)]
    if last_first:
        workers.reverse()
    for worker in workers:
        scheduling.add_node(worker)
    for worker in workers:
        scheduling.add_node_collection(worker, tests)
    scheduling.schedule()
    ran: list[tuple[str, str]] = []
    while len(ran) < len(tests):
        ready = [worker for worker in workers if worker.queue and (len(worker.queue) > 1 or worker.shutting_down)]
        assert ready, f"no worker continues after {ran}"
        for worker in ready:
            test = worker.queue.pop(0)
            ran.append((worker.name, tests[test]))
            scheduling.mark_test_complete(worker, test)
    return ran


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
class TestScheduling:
    def test_everything_is_run_once(self, count: int) -> None:
        every = [CHART, *KUBE, *IN_LANES, *CONTRACT, *UNITS]
        ran = run(every, count)
        assert sorted(test for _, test in ran) == sorted(every)

    @pytest.mark.parametrize("last_first", [False, True])
    def test_less_than_there_are_workers(self, count: int, last_first: bool) -> None:
        """One class of end-to-end tests, with and without others: xdist stops the workers that were ready last."""
        for every in (IN_LANES[:2], [*IN_LANES[:2], *UNITS[:3]], [*IN_LANES[:2], *CONTRACT]):
            assert sorted(test for _, test in run(every, count, last_first=last_first)) == sorted(every)

    def test_what_computes_is_last(self, count: int) -> None:
        """On each worker: until then the worker that is no lane has the usual priority."""
        ran = run([CHART, *KUBE, *IN_LANES, *CONTRACT, *UNITS], count)
        for name in {who for who, _ in ran}:
            kinds = [unit(test)[0].value for who, test in ran if who == name]
            assert kinds == sorted(kinds)

    def test_a_class_and_what_has_its_own_servers_stay_together(self, count: int) -> None:
        who: dict[str, set[str]] = {}
        for worker, test in run([*IN_LANES, *CONTRACT, *UNITS], count):
            who.setdefault(unit(test)[1], set()).add(worker)
        assert all(len(workers) == 1 for workers in who.values())

    def test_the_others_have_no_brokers(self, count: int) -> None:
        """Workers beyond the number of lanes run no end-to-end test."""
        ran = run([*IN_LANES, *UNITS], count)
        assert {who for who, test in ran if unit(test)[0] is Kind.LANE} <= {f"gw{at}" for at in range(LANES)}
