"""A controller that applies a manifest from Git again and again, and a person who changes the resource meanwhile."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.fakes.whole_program import run_program
from tests.kube.namespaces import Namespace

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.reconcile.state.desired import Desired

pytestmark = pytest.mark.apiserver

GIT: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[2] / "examples" / "gitops" / "rebalance.yaml").read_text(encoding="utf-8")
)
CONTROLLERS = {
    "Flux": ("--server-side", "--force-conflicts", "--field-manager=kustomize-controller"),
    "Argo CD": (),
    "Argo CD, ServerSideApply=true": ("--server-side", "--force-conflicts", "--field-manager=argocd-controller"),
}


@pytest.fixture(params=CONTROLLERS.values(), ids=CONTROLLERS)
def arguments(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """How the controller applies: on the server, or as `kubectl apply` does."""
    found: tuple[str, ...] = request.param
    return found


def sync(namespace: Namespace, arguments: tuple[str, ...]) -> dict[str, Any]:
    """Apply the manifest, and return the resource."""
    manifest = {**GIT, "metadata": {**GIT["metadata"], "namespace": namespace.name}}
    namespace.kubectl("apply", *arguments, "-f", "-", stdin=json.dumps(manifest))
    return namespace.get(REBALANCES, GIT["metadata"]["name"])


async def test_what_git_does_not_name_stays(
    namespace: Namespace, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suspend and a throttle from the command line, at 3 a.m.; and applying again changes nothing."""
    monkeypatch.setenv("KUBECONFIG", str(namespace.cluster.admin_kubeconfig))
    name = sync(namespace, arguments)["metadata"]["name"]
    for command in (("suspend", name), ("throttle", name, "--rate", "5Mi")):
        done = await asyncio.to_thread(run_program, *command, "-n", namespace.name)
        assert done.code == 0, done.err
    before = namespace.get(REBALANCES, name)
    for _ in range(3):
        found = sync(namespace, arguments)
        assert found["spec"]["execution"]["suspend"] is True
        assert found["spec"]["throttle"] == {"leaderRate": "5Mi", "followerRate": "5Mi"}
        assert found["metadata"]["generation"] == before["metadata"]["generation"]


async def test_an_override_of_what_git_names(
    namespace: Namespace, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spec is as in Git after each sync, and the annotations stay; so nothing in Git has to be left out."""
    monkeypatch.setenv("KUBECONFIG", str(namespace.cluster.admin_kubeconfig))
    monkeypatch.setitem(GIT["spec"], "suspend", False)
    monkeypatch.setitem(GIT["spec"], "throttle", {"leaderRate": "50Mi", "followerRate": "50Mi"})
    name = sync(namespace, arguments)["metadata"]["name"]
    for command in (("suspend", name), ("throttle", name, "--rate", "5Mi")):
        done = await asyncio.to_thread(run_program, *command, "--override", "--for", "2h", "-n", namespace.name)
        assert done.code == 0, done.err
    before = namespace.get(REBALANCES, name)
    for _ in range(3):
        found = sync(namespace, arguments)
        assert found["metadata"]["generation"] == before["metadata"]["generation"] == 1
        desired = Desired.of(found).as_of(datetime.now(UTC))
        assert (desired.spec.suspended, desired.spec.throttle.leader_rate) == (True, 5 * 2**20)
        assert (found["spec"]["suspend"], found["spec"]["throttle"]["leaderRate"]) == (False, "50Mi")
    done = await asyncio.to_thread(run_program, "resume", name, "-n", namespace.name)
    assert done.code == 0, done.err
    assert not Desired.of(sync(namespace, arguments)).as_of(datetime.now(UTC)).spec.suspended
