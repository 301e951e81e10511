"""The probes of an operator on a real API server, with the shipped service account."""

import contextlib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.bench.kube import KubeCluster, OwnKubeCluster
from e2e.bench.operator import LEASE, NAMESPACE, OperatorProcess
from e2e.bench.ports import release_port, reserve_port
from e2e.bench.waiting import wait_until

pytestmark = pytest.mark.apiserver

_RBAC = Path(__file__).parents[2] / "deploy" / "rbac.yaml"
OK = (200, "ok\n")
NEVER = "1h"
USUAL = "30s"


class Probed(OperatorProcess):
    """An operator with a health port."""

    def __init__(self, kube: KubeCluster, identity: str, lease: str) -> None:
        self.port = reserve_port()
        arguments = ("--all-namespaces", "--health-port", str(self.port), "--lease-duration", lease)
        super().__init__(kube, *arguments, identity=identity)

    def ask(self, path: str, timeout: float = 60) -> tuple[int, str]:
        """Status code and text of the response."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def until(self, path: str, expected: tuple[int, str]) -> None:
        """Wait for this response."""
        wait_until(f"{path} answers {expected}", lambda: self.ask(path) == expected)

    def close(self) -> None:
        super().close()
        release_port(self.port)


Launch = Callable[[str, str], Probed]


@pytest.fixture
def launch(cluster: KubeCluster) -> Iterator[Launch]:
    made: list[Probed] = []

    def make(identity: str, lease: str) -> Probed:
        made.append(Probed(cluster, identity, lease))
        return made[-1]

    yield make
    for process in made:
        process.close()
    cluster.kubectl("delete", "lease", LEASE, "-n", NAMESPACE, "--ignore-not-found")


class TestTwo:
    def test_a_rolling_update(self, cluster: KubeCluster, launch: Launch) -> None:
        """The new one becomes ready beside the old one, so that the old one is stopped; then the new one leads."""
        old, new = launch("old", NEVER).start(), launch("new", NEVER).start_waiting()
        for one in (old, new):
            assert (one.ask("/livez"), one.ask("/readyz")) == (OK, OK)
        assert old.stop() == 0
        new.wait_ready()
        new.until("/readyz", OK)
        assert cluster.get("lease", LEASE, "-n", NAMESPACE)["spec"]["holderIdentity"] == "new"


class TestWatching:
    def test_without_the_right_to(self, cluster: KubeCluster, launch: Launch) -> None:
        """Without its roles it does not become ready, and the log says why; it becomes ready when they exist."""
        cluster.kubectl("delete", "clusterrolebinding", "kafka-rebalance-operator")
        try:
            one = launch("one", NEVER).launch()
            wait_until("it says so", lambda: "not watching yet: ApiServerForbidden" in one.said())
            assert one.ask("/readyz") == (503, "not watching yet\n")
            assert one.ask("/livez") == OK
        finally:
            cluster.kubectl("apply", "-f", str(_RBAC))
        one.wait_ready()
        one.until("/readyz", OK)
        assert "Not enough permissions" not in one.said()  # kopf requests nothing that the roles do not allow


class TestStandstill:
    def test_a_process_that_is_stopped(self, launch: Launch) -> None:
        """A suspended process does not answer, which the kubelet counts as a failure."""
        one = launch("one", NEVER).start()
        one.freeze()
        with pytest.raises(TimeoutError):
            one.ask("/livez", timeout=1)
        one.thaw()
        one.until("/livez", OK)
        one.until("/readyz", OK)

    def test_the_api_server_is_away(self, cluster: OwnKubeCluster, launch: Launch) -> None:
        """Not ready, because it may not act without its lease; live, because a restart would not help."""
        first, second = launch("first", USUAL).start(), launch("second", USUAL).start_waiting()
        cluster.kill9_api_server()
        try:
            first.until("/readyz", (503, "the lease was not renewed in time\n"))
            second.until("/readyz", (503, "the API server has not said who holds the lease\n"))
            assert (first.ask("/livez"), second.ask("/livez")) == (OK, OK)
        finally:
            cluster.start_api_server()

        def is_back() -> bool:
            # An API server that has just started refuses every request until its roles are loaded: an operator that
            # asks then exits, and a Pod would restart it.
            if not second.running:
                second.launch()
            with contextlib.suppress(urllib.error.URLError):
                return second.ask("/readyz") == OK
            return False

        wait_until("it is ready again", is_back)
