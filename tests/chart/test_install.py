"""The chart on a real API server: helm installs, tests, upgrades and uninstalls it."""

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
import yaml
from e2e.bench.audit import AuditLog
from e2e.bench.kube import KubeCluster, KubectlError, OwnKubeCluster
from e2e.bench.waiting import wait_until
from tests.chart.processes import PodProcesses
from tests.chart.rendering import (
    CASES,
    CHART,
    NAME,
    NAMESPACE,
    ROOT,
    HelmError,
    documented,
    helm,
    of_kind,
    pod_templates,
    rendered,
    rendered_text,
)

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.run import Run

pytestmark = pytest.mark.apiserver

REBALANCE = "kafkarebalances.kafkarebalance.dev"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"
NOWHERE = {"kafka": {"bootstrapServers": "127.0.0.1:1"}}


def apply_rebalance(cluster: KubeCluster, namespace: str, name: str, **spec: object) -> None:
    metadata = {"name": name, "namespace": namespace}
    body = {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance", "metadata": metadata}
    cluster.apply(json.dumps({**body, "spec": {**NOWHERE, **spec}}))


def state(cluster: KubeCluster, namespace: str, name: str) -> str:
    path = f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{namespace}/kafkarebalances/{name}"
    conditions = cluster.api.get(path)["status"].get("conditions", [])
    return next((found["reason"] for found in conditions if found["type"] == "Ready"), "")


def hold(cluster: KubeCluster, namespace: str, name: str) -> None:
    """Add the finalizer as the operator does for a reachable cluster; then only an operator can complete a deletion."""
    patch = json.dumps({"metadata": {"finalizers": [FINALIZER]}})
    cluster.kubectl("patch", REBALANCE, name, "-n", namespace, "--type=merge", "-p", patch)


def held(cluster: KubeCluster, namespace: str, name: str) -> bool:
    return FINALIZER in cluster.get(REBALANCE, name, "-n", namespace)["metadata"].get("finalizers", [])


def left_over(cluster: KubeCluster, namespace: str) -> set[str]:
    """All objects in a namespace except those that Kubernetes creates itself."""
    kinds = "all,configmaps,secrets,serviceaccounts,roles,rolebindings,leases,persistentvolumeclaims"
    found = cluster.kubectl("get", kinds, "-n", namespace, "-o", "name").split()
    return set(found) - {"configmap/kube-root-ca.crt", "serviceaccount/default"}


@pytest.fixture
def pods(cluster: KubeCluster) -> Iterator[PodProcesses]:
    with PodProcesses(cluster, NAMESPACE) as running:
        yield running


@pytest.fixture(scope="module")
def namespaces(cluster: KubeCluster) -> Callable[[str], str]:
    """The manifests' namespaces under other names, because later tests install into the real ones."""
    for name in (NAMESPACE, "kafka", "payments"):
        cluster.kubectl("create", "namespace", f"dry-{name}")
    return "dry-{}".format


class TestServerSideDryRun:
    @pytest.mark.parametrize("case", CASES)
    def test_everything_is_accepted(self, cluster: KubeCluster, namespaces: Callable[[str], str], case: str) -> None:
        """The API server's own strict validation knows every field and accepts every value."""
        # A bare Pod requires an existing service account: tested below. The kinds of the Prometheus operator are not
        # installed: promtool checks what is in them (tests/chart/test_monitoring.py).
        foreign = "monitoring.coreos.com/v1"
        manifests = [copy.deepcopy(m) for m in rendered(case) if m["kind"] != "Pod" and m["apiVersion"] != foreign]
        for manifest in manifests:
            if "namespace" in manifest["metadata"]:
                manifest["metadata"]["namespace"] = namespaces(manifest["metadata"]["namespace"])
        text = yaml.safe_dump_all(manifests)
        said = cluster.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)
        assert said.count("serverside-applied (server dry run)") == len(manifests)

    def test_names_that_look_like_numbers(self, cluster: KubeCluster) -> None:
        """Helm's text must quote it: 1e3 is a number for Go's parsers, but not for Python's."""
        for namespace in ("2024", "1e5"):
            cluster.kubectl("create", "namespace", namespace)
        odd = ("--no-hooks", "--set-json", 'watchNamespaces=["1e5"]', "--set-string", "nameOverride=1e3")
        text = rendered_text(*odd, "--set", "pipeline.enabled=true", release="1e3", namespace="2024")
        said = cluster.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)
        assert said.count("serverside-applied (server dry run)") == text.count("\nkind: ") > 10

    def test_every_pod_where_only_restricted_ones_are_admitted(self, cluster: KubeCluster) -> None:
        cluster.kubectl("create", "namespace", "restricted")
        cluster.kubectl("label", "namespace", "restricted", "pod-security.kubernetes.io/enforce=restricted")
        pods = []
        for case in CASES:
            for where, template in pod_templates(rendered(case)).items():
                name = f"{case}-{where}".lower().replace("/", "-")
                metadata = {**template["metadata"], "name": name, "namespace": "restricted"}
                spec = {"restartPolicy": "Never", **template["spec"]}
                pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        accounts = [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "restricted"}}
            for name in sorted({pod["spec"].get("serviceAccountName", "default") for pod in pods})
        ]
        cluster.apply(yaml.safe_dump_all(accounts))
        said = cluster.kubectl(
            "create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=yaml.safe_dump_all(pods)
        )
        assert said.count("created (server dry run)") == len(pods) > 10
        pods[0]["spec"]["containers"][0]["securityContext"]["capabilities"] = {}
        with pytest.raises(KubectlError, match="violates PodSecurity"):
            cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pods[0]))


class TestAllNamespaces:
    def older_chart(self, directory: Path) -> Path:
        """A chart whose KafkaRebalance CRD has no priority field yet."""
        older = directory / "older"
        shutil.copytree(CHART, older)
        path = older / "files" / "crds" / f"{REBALANCE}.yaml"
        crd = yaml.safe_load(path.read_text(encoding="utf-8"))
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["properties"]["priority"]
        path.write_text("# x\n" + yaml.safe_dump(crd, sort_keys=False), encoding="utf-8")
        return older

    async def test_from_install_to_uninstall(self, cluster: OwnKubeCluster, pods: PodProcesses, tmp_path: Path) -> None:
        """The commands of README.md and docs/install.md, in order."""
        admin = cluster.admin_kubeconfig
        install, test, uninstall = (documented("README.md", command) for command in ("install", "test", "uninstall"))
        upgrade = documented("docs/install.md", "upgrade")
        older = str(self.older_chart(tmp_path))
        log = AuditLog(cluster.audit_log, ACCOUNT)

        notes = helm(*(older if word == str(CHART) else word for word in install), kubeconfig=admin)
        for command in (f"helm test {NAME}", "kubectl create", "kubectl get"):
            assert command in notes
        apply_rebalance(cluster, "default", "a")
        wait_until("the operator writes a status", lambda: state(cluster, "default", "a") == "KafkaUnreachable")
        hold(cluster, "default", "a")

        with pytest.raises(HelmError):
            helm(*test, kubeconfig=admin)
        assert f"FAIL  CRD {REBALANCE} differs from the one of this version" in pods.said(f"{NAME}-test")
        helm(*upgrade, kubeconfig=admin)
        helm(*test, kubeconfig=admin)
        assert "FAIL" not in pods.said(f"{NAME}-test")
        assert "(server-side dry run) is accepted" in pods.said(f"{NAME}-test")
        helm(*documented("docs/live-page.md", "upgrade"), kubeconfig=admin)
        helm(*test, kubeconfig=admin)
        assert "FAIL" not in pods.said(f"{NAME}-test")
        apply_rebalance(cluster, "default", "a", priority=1)
        assert cluster.get(REBALANCE, "a")["spec"]["priority"] == 1

        # A rebalance is running: refused, nothing changes, the operator keeps running.
        await self.run_record(cluster, "default", "a")
        before = pods.running()
        with pytest.raises(HelmError):
            helm(*uninstall, kubeconfig=admin)
        assert "refused (UnderWay): KafkaRebalance default/a is running" in pods.said(f"{NAME}-uninstall")
        assert (held(cluster, "default", "a"), pods.running()) == (True, before)

        # As in docs/install.md: roll back to a release that can be upgraded, then use Leave.
        back = documented("docs/install.md", "rollback")
        helm(*("2" if word == "REVISION" else word for word in back), kubeconfig=admin)
        helm(*upgrade, "--set", "uninstall.underWay=Leave", kubeconfig=admin)
        said = helm(*uninstall, kubeconfig=admin)
        assert f"[CustomResourceDefinition] {REBALANCE}" in said
        assert not held(cluster, "default", "a")
        records = left_over(cluster, NAMESPACE)
        assert {name.partition("-")[0] for name in records} == {"configmap/run"}

        # The next installation finds CRDs and records; when it keeps nothing, nothing remains.
        cluster.kubectl("delete", "-n", NAMESPACE, *records)
        nothing = ("--set", "crds.keep=false,uninstall.keepRecords=false", "--wait=false")
        helm(*install, *nothing, kubeconfig=admin)
        hold(cluster, "default", "a")
        helm(*uninstall, kubeconfig=admin)
        assert left_over(cluster, NAMESPACE) == set()
        assert cluster.kubectl("get", "crds,clusterroles", "-o", "name").count("kafka") == 0
        for hook in ("test", "uninstall"):
            self.assert_rights_in_use(log, f"{NAME}-{hook}")

    def assert_rights_in_use(self, log: AuditLog, role: str) -> None:
        """The hook has used all that its role grants (`tests/kube/test_rights_in_use.py`: the other roles)."""
        granted = {
            (group, resource, verb)
            for rule in of_kind(rendered(), "Role", role)["rules"]
            for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"])
        }
        through = [request for request in log.requests() if request.binding == f"{role}/{NAMESPACE}"]
        assert {(request.group, request.resource, request.verb) for request in through} == granted

    async def run_record(self, cluster: KubeCluster, namespace: str, name: str) -> None:
        """Create the run record of an operator that has started to move partitions."""
        kube = KubeClient.connect(NAMESPACE, kubeconfig=str(cluster.admin_kubeconfig))
        uid = cluster.get(REBALANCE, name, "-n", namespace)["metadata"]["uid"]
        await RunStore(kube).save(Run(uid, namespace, name, "c", "r", "h", "p", datetime(2026, 1, 1, tzinfo=UTC)))
        await kube.close()


class TestSingleNamespaces:
    def test_needs_no_cluster_wide_right(self, cluster: KubeCluster, pods: PodProcesses) -> None:
        """An operator for two namespaces works in both and has no access to a third."""
        admin = cluster.admin_kubeconfig
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(ROOT / "crds"))
        for namespace in ("kafka", "payments", "elsewhere"):
            cluster.kubectl("create", "namespace", namespace)
            apply_rebalance(cluster, namespace, "a")
        helm(*documented("docs/install.md", "install", 1), "--create-namespace", kubeconfig=admin)
        for namespace in ("kafka", "payments"):
            wait_until(
                f"the operator writes a status in {namespace}",
                lambda namespace=namespace: state(cluster, namespace, "a") == "KafkaUnreachable",
            )
            hold(cluster, namespace, "a")
        assert state(cluster, "elsewhere", "a") == ""
        helm("test", NAME, "-n", NAMESPACE, kubeconfig=admin)

        account = cluster.service_account_kubeconfig(NAMESPACE, NAME)
        cluster.kubectl("get", "namespace", "kafka", kubeconfig=account)
        refused = [("list", "namespaces"), ("get", "crds"), ("list", REBALANCE), ("get", "secrets")]
        for verb, what in refused:
            with pytest.raises(RuntimeError, match="no"):
                cluster.kubectl("auth", "can-i", verb, what, "-n", "elsewhere", kubeconfig=account)

        helm("uninstall", NAME, "-n", NAMESPACE, "--wait", kubeconfig=admin)
        assert not any(held(cluster, namespace, "a") for namespace in ("kafka", "payments"))
        for namespace in ("kafka", "payments", "elsewhere", NAMESPACE):
            assert left_over(cluster, namespace) == set()
