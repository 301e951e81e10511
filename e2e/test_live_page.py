"""The operator's live page in a real browser, against a running rebalance.

`e2e/test_run.py` reads the page of `run --serve`; `e2e/test_report_page.py` opens the report as a file.
"""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.bench.browser import Browser, Window
from e2e.bench.kube import KubeCluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.token_proxy import token_proxy
from e2e.bench.waiting import wait_until
from e2e.rebalance import KIND, NAMESPACE
from e2e.world import BIG, FAST, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

REVIEWS = "tokenreviews.authentication.k8s.io,subjectaccessreviews.authorization.k8s.io"


@pytest.fixture
def reviews(kube: KubeCluster, operator: OperatorProcess, unique: Callable[[str], str]) -> Iterator[None]:
    """The operator may create reviews, as in the documentation."""
    name = unique("reports")
    kube.kubectl("create", "clusterrole", name, "--verb=create", f"--resource={REVIEWS}")
    account = f"--serviceaccount={operator.account}"
    kube.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    yield
    kube.kubectl("delete", "clusterrole,clusterrolebinding", name)


@pytest.fixture
def token(kube: KubeCluster, unique: Callable[[str], str]) -> Iterator[Callable[[str], str]]:
    """A token of a new service account with this verb on KafkaRebalances of the namespace."""
    made: list[str] = []

    def make(verb: str) -> str:
        name = unique(f"may-{verb}")
        made.append(name)
        here = ("-n", NAMESPACE)
        kube.kubectl("create", "serviceaccount", name, *here)
        kube.kubectl("create", "role", name, f"--verb={verb}", f"--resource={KIND}", *here)
        subject = f"--serviceaccount={NAMESPACE}:{name}"
        kube.kubectl("create", "rolebinding", name, f"--role={name}", subject, *here)
        return kube.kubectl("create", "token", name, *here).strip()

    yield make
    for name in made:
        kube.kubectl("delete", "serviceaccount,role,rolebinding", name, "-n", NAMESPACE)


def status_of(url: str, token: str) -> int:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def until_it_shows(window: Window, *texts: str) -> str:
    """Waits until the page shows all these texts. The page reloads by itself."""

    def shown() -> str:
        document = window.document()
        return document if all(text in document for text in texts) else ""

    return wait_until(f"the page shows {' and '.join(texts)}", shown)


@pytest.mark.usefixtures("reviews")
class TestRunningRebalance:
    def test_a_page_that_stays_open(
        self,
        world: World,
        operator: OperatorProcess,
        token: Callable[[str], str],
        tmp_path: Path,
    ) -> None:
        """It shows copies in flight, and then, by reloading itself, the success of the rebalance."""
        topic = world.skewed("live", *[BIG] * 6)
        rebalance = world.rebalance("live", topic)
        rebalance.until("copies are in flight", lambda status: status.get("currentBatch"))
        path = f"/namespaces/{NAMESPACE}/kafkarebalances/{rebalance.name}"
        url = f"http://127.0.0.1:{operator.report_port}{path}"
        reader, stranger = token("get"), token("list")
        # The authorizer of the API server knows new roles within a moment.
        wait_until("the role counts", lambda: status_of(url, reader) == 200)
        assert status_of(url, stranger) == 403
        assert status_of(url, "made-up") == 401
        assert reader not in operator.said()

        with token_proxy(operator.report_port, reader) as proxy:
            browser = Browser(tmp_path)
            with browser.window(f"{proxy}{path}") as window:
                document = until_it_shows(window, "<h2>In flight</h2>", "4 of 4 shown")
                assert '<span class="state">Rebalancing</span>' in document
                assert f"<td>{topic}-" in document
                from matplotlib.image import imread  # slow, and most workers only collect this test

                picture = imread(window.picture(tmp_path / "running.png"))
                blue = (picture[..., 2] > picture[..., 0] + 0.3) & (picture[..., 2] > 0.5)
                assert blue.mean() > 0.01  # the columns of the brokers
                rebalance.patch(throttle=FAST)
                rebalance.wait_for("Succeeded")
                document = until_it_shows(window, '<span class="state">Succeeded</span>', "4 of 4 shown")
                assert "<h2>In flight</h2>" not in document
                window.picture(tmp_path / "succeeded.png")
            assert browser.console == ""
