"""check-install and retire on a real API server: CRDs, permissions, dry runs and Deployments."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from e2e.bench.kube import KubeCluster
from tests.kube.namespaces import Namespace

from kafka_rebalance.api import crd
from kafka_rebalance.api.v1alpha1 import CONNECTIONS, FINALIZER, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.app.system_clock import SystemClock
from kafka_rebalance.cli.commands import check_install_command as check_install
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.installation import Installation
from kafka_rebalance.kube.lease import LEASE_NAME, LeaseHolder

pytestmark = pytest.mark.apiserver

OPERATOR = ("kafka-rebalance", "kafka-rebalance-operator")


def command(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("kafka-rebalance"))
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=env, check=False)


@pytest.fixture
async def leader(cluster: KubeCluster) -> AsyncIterator[LeaseHolder]:
    """Stands in for an operator that holds the lease."""
    kube = KubeClient.connect("kafka-rebalance", kubeconfig=str(cluster.service_account_kubeconfig(*OPERATOR)))
    holder = LeaseHolder(kube, LEASE_NAME, "operator-1", SystemClock())
    await holder.acquire()
    yield holder
    await holder.release()
    await kube.close()


class TestCheckInstall:
    async def test_as_the_operator(self, cluster: KubeCluster, leader: LeaseHolder) -> None:
        """With the shipped roles all checks pass; the operator may not create a resource itself."""
        where = ("--all-namespaces", "--own-namespace", "kafka-rebalance")
        done = command(cluster.service_account_kubeconfig(*OPERATOR), "check-install", *where)
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        assert [line[:6].strip() for line in lines] == ["ok", "ok", "ok", "ok", "ok", "-", "ok"]
        assert lines[-1].endswith("is held by operator-1")

    async def test_as_an_administrator(self, namespace: Namespace) -> None:
        """A user who may create resources gets a dry run by the API server; nothing is stored. No operator: exit 4."""
        done = command(namespace.cluster.admin_kubeconfig, "check-install", "--namespace", namespace.name,
                       "--own-namespace", namespace.name)  # fmt: skip
        *asked, leads = done.stdout.splitlines()
        assert {line[:6].strip() for line in asked} == {"ok"}
        assert (leads[:4], done.returncode) == ("FAIL", 4)
        assert namespace.kubectl("get", f"{REBALANCES}.kafkarebalance.dev", "-o", "name") == ""

    async def test_names_each_right_that_is_missing(self, namespace: Namespace) -> None:
        namespace.kubectl("create", "serviceaccount", "somebody")  # `default` is created shortly after the namespace
        somebody = namespace.cluster.service_account_kubeconfig(namespace.name, "somebody")
        done = command(somebody, "check-install", "--namespace", namespace.name, "--own-namespace", namespace.name)
        assert done.returncode == 1
        assert f"FAIL  not allowed: patch {REBALANCES}.kafkarebalance.dev/status in namespace {namespace.name}" in (
            done.stdout.splitlines()
        )

    async def test_a_crd_of_another_version(self, client: KubeClient, monkeypatch: pytest.MonkeyPatch) -> None:
        """A CRD that is incompatible with the operator."""
        older = crd.definitions()
        properties = older[f"{REBALANCES}.kafkarebalance.dev"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        del properties["properties"]["spec"]["properties"]["priority"]
        monkeypatch.setattr(check_install, "definitions", lambda: older)
        said = [str(answer) async for answer in check_install.answers(client, ())]
        differs, *same = [line for line in said if "CRD" in line]
        assert differs.startswith(f"FAIL  CRD {REBALANCES}.kafkarebalance.dev differs from the one of this version: ")
        others = (REASSIGNMENT_THROTTLES, CONNECTIONS)
        assert same == [f"ok    CRD {plural}.kafkarebalance.dev matches this version" for plural in others]

    async def test_a_dry_run_is_a_real_check(self, client: KubeClient) -> None:
        """The schema is applied, and unknown fields are refused."""
        metadata = {"generateName": "x-"}
        body = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance", "metadata": metadata}
        kafka = {"kafka": {"bootstrapServers": "kafka:9092"}}
        await Installation(client).dry_run(REBALANCES, {**body, "spec": kafka})
        for wrong in ({"kafka": {"bootstrapServers": "kafka"}}, {**kafka, "prioritty": 1}):
            with pytest.raises(Refused):
                await Installation(client).dry_run(REBALANCES, {**body, "spec": wrong})


class TestRetire:
    async def test_scales_down_lets_go_and_leaves_no_lease(self, namespace: Namespace) -> None:
        labels = {"app": "x"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "none.invalid/x"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
        namespace.kubectl("apply", "-f", "-", stdin=json.dumps(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator"}, "spec": spec}
        ))  # fmt: skip
        namespace.apply("KafkaRebalance", {})
        namespace.apply("KafkaReassignmentThrottle", {"leaderRate": "1Mi"})
        for plural in (REBALANCES, REASSIGNMENT_THROTTLES):
            patch = json.dumps({"metadata": {"finalizers": [FINALIZER, "example.com/other"]}})
            namespace.kubectl("patch", f"{plural}.kafkarebalance.dev", "a", "--type=merge", "-p", patch)

        where = ("--namespace", namespace.name, "--own-namespace", namespace.name)
        done = command(namespace.cluster.admin_kubeconfig, "retire", *where, "--deployment", "operator")
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"removed the finalizer from 2 of 2 resources in namespace {namespace.name}\n"
        for plural in (REBALANCES, REASSIGNMENT_THROTTLES):
            assert namespace.get(plural)["metadata"]["finalizers"] == ["example.com/other"]
            namespace.kubectl("patch", f"{plural}.kafkarebalance.dev", "a", "--type=merge", "-p",
                              '{"metadata":{"finalizers":null}}')  # fmt: skip
        assert namespace.kubectl("get", "deployment", "operator", "-o", "jsonpath={.spec.replicas}") == "0"
        kube = KubeClient.connect(namespace.name, kubeconfig=str(namespace.cluster.admin_kubeconfig))
        assert (await Installation(kube).replicas("operator"), await Installation(kube).replicas("none")) == (0, None)
        await kube.close()
        assert namespace.kubectl("get", "leases", "-o", "name") == ""

    async def test_a_deletion_under_way_is_refused(self, namespace: Namespace) -> None:
        namespace.apply("KafkaRebalance", {})
        resource = f"{REBALANCES}.kafkarebalance.dev"
        namespace.kubectl(
            "patch", resource, "a", "--type=merge", "-p", f'{{"metadata":{{"finalizers":["{FINALIZER}"]}}}}'
        )
        namespace.kubectl("delete", resource, "a", "--wait=false")
        where = ("--namespace", namespace.name, "--own-namespace", namespace.name)
        refused = command(namespace.cluster.admin_kubeconfig, "retire", *where)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert f"KafkaRebalance {namespace.name}/a is being deleted" in refused.stderr
        left = command(namespace.cluster.admin_kubeconfig, "retire", *where, "--under-way", "leave")
        assert left.returncode == 0, left.stderr
        assert namespace.kubectl("get", resource, "-o", "name") == ""
