"""The CRDs and the leader that check-install reports. tests/kube covers the rest on a real API server."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.installed_kube import InstalledKube
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.api.crd import definitions
from kafka_rebalance.cli.commands.check_install_command import answers
from kafka_rebalance.kube.lease import LEASE_NAME


async def leads(renewed_ago: timedelta, holder: str = "operator-1") -> str:
    kube = KubeInMemory()
    renewed = (datetime.now(UTC) - renewed_ago).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 30, "renewTime": renewed}
    await kube.create_lease({"metadata": {"name": LEASE_NAME}, "spec": spec})
    return str([answer async for answer in answers(kube, ())][-1]).partition(" at 2")[0]


@pytest.fixture
def _all_else_is_well(monkeypatch):
    """The checks of the API server that come first."""

    async def well(*_):
        return []

    for question in ("_served", "_same_definition", "_rights", "_dry_run"):
        monkeypatch.setattr(f"kafka_rebalance.cli.commands.check_install_command.{question}", well)


class TestDefinitions:
    """The operator watches all kinds, so all CRDs are checked."""

    @pytest.fixture
    def kube(self):
        return InstalledKube()

    async def said(self, kube):
        return [str(answer) async for answer in answers(kube, ())]

    @pytest.mark.parametrize("name", sorted(definitions()))
    async def test_one_is_missing(self, kube, name):
        del kube.crds[name]
        served, *rest = await self.said(kube)
        plural = name.partition(".")[0]
        assert served.startswith(f"FAIL  kafkarebalance.dev/v1alpha1: {plural}, {plural}/status not served")
        assert f"FAIL  CRD {name}: CustomResourceDefinition {name} not found" in rest

    @pytest.mark.parametrize("name", sorted(definitions()))
    async def test_one_is_of_another_version(self, kube, name):
        kube.crds[name]["spec"]["versions"] = []
        assert f"FAIL  CRD {name} differs from the one of this version: apply that one" in await self.said(kube)


@pytest.mark.usefixtures("_all_else_is_well")
class TestLeader:
    async def test_renews_its_lease(self):
        assert await leads(timedelta(seconds=10)) == f"ok    lease kafka-rebalance/{LEASE_NAME} is held by operator-1"

    async def test_whose_clock_is_slow(self):
        """By less than a minute: that is no problem."""
        assert (await leads(timedelta(seconds=80))).startswith("ok")

    async def test_was_killed(self):
        """Its name stays in the Lease until another operator takes it."""
        said = f"FAIL  lease kafka-rebalance/{LEASE_NAME} expired: operator-1 last renewed it"
        assert await leads(timedelta(minutes=5)) == said

    async def test_has_given_it_up(self):
        assert "has no holder" in await leads(timedelta(minutes=5), holder="")
