"""Who sees the report of a KafkaRebalance: a real API server decides by its own tokens, with the chart's roles."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from time import monotonic

import pytest
from aiohttp import ClientSession
from e2e.bench.kube import KubeCluster
from tests.kube.installed_roles import install_roles
from tests.kube.namespaces import Namespace

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.app import report_access
from kafka_rebalance.app.fresh_pages import FreshPages
from kafka_rebalance.app.report_access import ReportAccess
from kafka_rebalance.app.report_port import reports_served
from kafka_rebalance.app.resource_reports import ResourceReports
from kafka_rebalance.kube.access_reviews import AccessReviews
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.store import PlanStore
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.topology import TopicPartition, replicas_of

pytestmark = pytest.mark.apiserver

MOVED = PlannedPartition(TopicPartition("orders", 7), replicas_of(1, 2), replicas_of(3, 2), size_bytes=1 << 20)
PLAN = Plan((MOVED,), Certificate(1, optimal=True))


class Reports:
    """The port, with the operator's account."""

    def __init__(self, kube: KubeClient, port: int) -> None:
        self._kube = kube
        self._port = port

    @asynccontextmanager
    async def serving(self, audience: str | None = None) -> AsyncIterator[None]:
        access = ReportAccess(AccessReviews(self._kube, audience), monotonic)
        pages = FreshPages(ResourceReports(self._kube, (), lambda: datetime.now(UTC)).of)
        async with reports_served(self._port, access, pages):
            yield

    async def ask(self, token: str, namespace: Namespace, name: str = "a") -> tuple[int, str]:
        url = f"http://127.0.0.1:{self._port}/namespaces/{namespace.name}/kafkarebalances/{name}"
        async with ClientSession(headers={"Authorization": f"Bearer {token}"}) as browser, browser.get(url) as answer:
            return answer.status, await answer.text()


def account(namespace: Namespace, name: str, *resource_names: str) -> None:
    """A service account that may get these KafkaRebalances of the namespace."""
    namespace.kubectl("create", "serviceaccount", name)
    for resource in resource_names:
        rights = ("--verb=get", f"--resource={REBALANCES}.kafkarebalance.dev", f"--resource-name={resource}")
        namespace.kubectl("create", "role", name, *rights)
        namespace.kubectl("create", "rolebinding", name, f"--role={name}", f"--serviceaccount={namespace.name}:{name}")


def token(namespace: Namespace, name: str, *options: str) -> str:
    return namespace.kubectl("create", "token", name, *options).strip()


@pytest.fixture
async def reports(cluster: KubeCluster, own: Namespace, report_port: int) -> AsyncIterator[Reports]:
    install_roles(own, (), "report.enabled=true")
    kubeconfig = cluster.service_account_kubeconfig(own.name, own.name)
    kube = KubeClient.connect(own.name, kubeconfig=str(kubeconfig))
    yield Reports(kube, report_port)
    await kube.close()


@pytest.fixture
async def planned(cluster: KubeCluster, own: Namespace, namespace: Namespace) -> Namespace:
    """The namespace of a KafkaRebalance ``a`` with a plan."""
    namespace.apply("KafkaRebalance", {})
    about = namespace.get(REBALANCES)["metadata"]
    admin = KubeClient.connect(own.name, kubeconfig=str(cluster.admin_kubeconfig))
    await PlanStore(admin).save(about["uid"], PLAN.hash, "c", PLAN, datetime.now(UTC))
    await admin.close()
    shown = {"hash": PLAN.hash, "partitions": 1, "replicaMoves": 1, "lowerBound": 1, "optimal": True}
    shown |= {"leaderMoves": 0, "dataToMove": 1 << 20, "perBrokerCount": 0}
    patch = json.dumps({"status": {"plan": shown}})
    namespace.kubectl("patch", REBALANCES, "a", "--subresource=status", "--type=merge", "-p", patch)
    return namespace


class TestAccess:
    async def test_by_the_rights_of_the_user(self, planned: Namespace, reports: Reports) -> None:
        """A role for one resource is enough, and is for no other. The plan needs no right on ConfigMaps."""
        account(planned, "reader", "a")
        account(planned, "stranger")
        async with reports.serving():
            status, page = await reports.ask(token(planned, "reader"), planned)
            assert (status, PLAN.hash in page, "1 of 1 partitions that change" in page) == (200, True, True)
            assert (await reports.ask(token(planned, "reader"), planned, "b"))[0] == 403
            for name in ("a", "no-such"):
                status, said = await reports.ask(token(planned, "stranger"), planned, name)
                assert status == 403
                assert PLAN.hash not in said

    async def test_no_token_of_this_cluster(self, planned: Namespace, reports: Reports) -> None:
        account(planned, "reader", "a")
        forged = token(planned, "reader")[:-8] + "AAAAAAAA"
        async with reports.serving():
            assert (await reports.ask(forged, planned))[0] == 401
            assert (await reports.ask("made-up", planned))[0] == 401

    async def test_what_is_taken_away(
        self, planned: Namespace, reports: Reports, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Removing the right, or the account with all its tokens, takes effect when the cached answer expires."""
        monkeypatch.setattr(report_access, "KEPT_SECONDS", 0.0)
        account(planned, "reader", "a")
        given = token(planned, "reader")
        async with reports.serving():
            assert (await reports.ask(given, planned))[0] == 200
            planned.kubectl("delete", "rolebinding", "reader")
            await self._until(403, reports, given, planned)
            planned.kubectl("delete", "serviceaccount", "reader")
            await self._until(401, reports, given, planned)

    async def _until(self, status: int, reports: Reports, given: str, planned: Namespace) -> None:
        """Waits for the answer, because the authorizer and the token cache of the API server take seconds."""
        before = {401: 403, 403: 200}[status]
        while (found := (await reports.ask(given, planned))[0]) in (before, 429):
            pass
        assert found == status

    async def test_a_resource_that_is_gone(self, planned: Namespace, reports: Reports) -> None:
        account(planned, "reader", "b")
        async with reports.serving():
            assert (await reports.ask(token(planned, "reader"), planned, "b"))[0] == 404


class TestAudience:
    async def test_each_token_has_its_place(self, planned: Namespace, reports: Reports) -> None:
        """With a separate audience, tokens for the API server are refused, and vice versa."""
        account(planned, "reader", "a")
        given = token(planned, "reader", "--audience=report")
        async with reports.serving("report"):
            assert (await reports.ask(given, planned))[0] == 200
            assert (await reports.ask(token(planned, "reader"), planned))[0] == 401
        async with reports.serving():
            assert (await reports.ask(given, planned))[0] == 401


class TestRights:
    async def test_without_the_role_for_reviews(self, own: Namespace, planned: Namespace, reports: Reports) -> None:
        """No user can see a page, not even one who may get the resource."""
        own.cluster.kubectl("delete", "clusterrolebinding", f"{own.name}-reports")
        account(planned, "reader", "a")
        async with reports.serving():
            # The authorizer of the API server follows within a moment.
            while (answer := await reports.ask(token(planned, "reader"), planned))[0] == 200:
                pass
        assert answer == (503, "ApiServerForbidden: see the log of the operator\n")
