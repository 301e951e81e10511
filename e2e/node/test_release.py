"""From install to uninstall on an empty node: the operator, installed by its chart, completes rebalances despite
disruptions.

The tests run in this order on one cluster: each one leaves the release in the state that the next one expects.
"""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.bench.kafka import KafkaCluster
from e2e.bench.kube import KubectlError
from e2e.bench.operator import NAMESPACE
from e2e.bench.waiting import wait_until
from e2e.node.images import NEXT_TAG
from e2e.node.provider import Node
from e2e.node.release import NAME, ROOT, Release, volume
from e2e.rebalance import KIND, Rebalance
from e2e.world import BIG, CRAWL, FAST, World, targets

pytestmark = [pytest.mark.node, pytest.mark.brokers]

STANDSTILL = {"leaderRate": "16Ki", "followerRate": "16Ki"}
"""A copy of a BIG partition takes two minutes: it stays in flight until the rate is raised."""
IMPATIENT = ("livenessProbe.periodSeconds=1", "livenessProbe.timeoutSeconds=2", "livenessProbe.failureThreshold=5")


class TestInstalled:
    """The state after `helm install --wait` and `helm test` of README.md."""

    def test_leads_and_is_ready(self, operator: Release) -> None:
        """The Pod's service account is allowed to take the Lease, under the Pod's name."""
        pod = operator.pod()
        assert pod["status"]["containerStatuses"][0]["ready"]
        assert operator.holder == pod["metadata"]["name"]
        assert "operator ready: watching all namespaces" in operator.logs()

    def test_has_its_own_account_and_nothing_more(self, kube: Node, operator: Release) -> None:
        """It needs no additional rights and no kubeconfig."""
        spec = operator.pod()["spec"]
        assert spec["serviceAccountName"] == NAME
        (container,) = spec["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert not [e for e in container.get("env", []) if "KUBECONFIG" in e["name"]]
        account = ("--as", f"system:serviceaccount:{NAMESPACE}:{NAME}")
        for verb, what in {"create": "pods", "delete": "configmaps", "list": "secrets", "patch": "deployments"}.items():
            assert not _may(kube, verb, what, "-n", "default", *account), f"{verb} {what}"
        assert _may(kube, "patch", f"{KIND}/status", "-n", "default", *account)

    def test_passes_pod_security(self, kube: Node, operator: Release) -> None:
        """The namespace admits only Pods that pass `restricted`, and this Pod runs in it."""
        assert operator.pod()["metadata"]["namespace"] == NAMESPACE
        labels = kube.get("namespace", NAMESPACE)["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


class TestInFlight:
    """A Pod runs a rebalance; disruptions of the Pod do not change the result."""

    def test_patched(self, world: World) -> None:
        """A copy that would take half a minute completes at once after a patch of the throttle."""
        rebalance, plan = _in_flight(world, "patched", CRAWL)
        rebalance.patch(throttle=FAST, execution={"parallelPartitionCount": 50})
        _assert_carried_out(world, rebalance, plan)

    def test_pod_killed(self, world: World, operator: Release) -> None:
        """Killed without notice, as with a node failure: the next Pod waits until the Lease expires and continues."""
        rebalance, plan = _in_flight(world, "killed", STANDSTILL)
        former = operator.pod()["metadata"]["name"]
        operator.freeze()  # the kubelet always sends SIGTERM first; a suspended process does not receive it
        world.kube.kubectl("delete", "pod", former, "-n", NAMESPACE, "--grace-period=0", "--force")
        operator.wait_led_by_another(former)
        assert "waiting for the lease held by" in operator.logs()
        rebalance.patch(throttle=FAST)
        _assert_carried_out(world, rebalance, plan)

    def test_pod_deleted(self, world: World, operator: Release) -> None:
        """SIGTERM: the Pod releases its Lease before it exits, so the next Pod does not have to wait for it."""
        rebalance, plan = _in_flight(world, "deleted", STANDSTILL)
        former = operator.pod()["metadata"]["name"]
        begun = time.monotonic()
        world.kube.kubectl("delete", "pod", former, "-n", NAMESPACE, timeout=120)
        gone = time.monotonic() - begun
        operator.wait_led_by_another(former)
        print(f"SIGTERM to gone {gone:.1f} s, to led by another {time.monotonic() - begun:.1f} s")
        assert "waiting for the lease" not in operator.logs() or "is held by this operator" in operator.logs()
        rebalance.patch(throttle=FAST)
        _assert_carried_out(world, rebalance, plan)

    def test_upgraded(self, world: World, operator: Release) -> None:
        """`helm upgrade --wait` to another image: the new Pod becomes ready beside the old one, and takes over."""
        rebalance, plan = _in_flight(world, "upgraded", STANDSTILL)
        former = operator.pod()["metadata"]["name"]
        values = [f"image.tag={NEXT_TAG}", *IMPATIENT, "terminationGracePeriodSeconds=10"]
        operator.upgrade(*(f"--set {value}" for value in values))
        successor = operator.wait_led_by_another(former)
        assert successor["spec"]["containers"][0]["image"].endswith(f":{NEXT_TAG}")
        rebalance.patch(throttle=FAST)
        _assert_carried_out(world, rebalance, plan)

    def test_hung(self, world: World, operator: Release) -> None:
        """The process hangs: the kubelet detects it by /livez and restarts the container in the same Pod."""
        rebalance, plan = _in_flight(world, "hung", STANDSTILL)
        before = operator.pod()["metadata"]["name"]

        def restarts() -> int:
            return int(operator.pod()["status"]["containerStatuses"][0]["restartCount"])

        so_far = restarts()
        operator.freeze()

        def restarted() -> bool:
            return restarts() > so_far

        wait_until("the kubelet restarts it", restarted, timeout=120)
        operator.start()
        assert operator.pod()["metadata"]["name"] == before == operator.holder
        rebalance.patch(throttle=FAST)
        _assert_carried_out(world, rebalance, plan)

    def test_cancelled(self, world: World) -> None:
        """Deleted in flight: rolled back by a Pod as by a process."""
        topic = world.skewed("cancelled", *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("cancelled", topic, throttle=STANDSTILL)
        rebalance.until("copies in flight", lambda status: status.get("currentBatchSize"))
        rebalance.delete()
        rebalance.wait_gone()
        world.assert_reached({key: found.replicas for key, found in before.items()})


class TestPipeline:
    def test_samples_and_load_models(self, world: World, kube: Node, operator: Release) -> None:
        """The Pods of the CronJobs run once each from their image; the operator plans with their load model."""
        lake = _enable_pipeline(world, kube, operator)
        topic = world.skewed("modelled", *[BIG] * 6)
        assert "rows" in operator.complete("sample-now", f"{NAME}-sample-main")
        assert "partitions" in operator.complete("model-now", f"{NAME}-load-model")
        assert list(lake.glob("models/*/load-model.parquet"))
        rebalance, plan = _in_flight(world, "modelled", CRAWL, topic)
        assert rebalance.status["plan"]["dataSource"] == "LoadModel"
        rebalance.patch(throttle=FAST)
        _assert_carried_out(world, rebalance, plan)
        # No hour has ended, and one run is too few to learn from: the Jobs end well nevertheless.
        operator.complete("windows-now", f"{NAME}-windows")
        wait_until("the operator writes the steps of the run", lambda: list(lake.glob("steps/**/*.parquet")))
        assert "NoHistory" in operator.complete("history-now", f"{NAME}-history")
        assert "merged" in operator.complete("compact-now", f"{NAME}-compact")

    def test_load_models_by_executors_in_pods(self, world: World, kube: Node, operator: Release) -> None:
        """The Job's Pod is Spark's driver: executors start in Pods of their own, compute, and go with it."""
        # All of them on one small node.
        conf = {"spark.kubernetes.executor.request.cores": "100m"}
        spark = {"master": "k8s", "executors": 2, "executorMemory": "512m", "conf": conf}
        lake = _enable_pipeline(world, kube, operator, spark=spark)
        world.skewed("executed", *[BIG] * 6)
        operator.complete("sample-executed", f"{NAME}-sample-main")
        for path in lake.glob("models/*/*"):
            path.unlink()
        assert "partitions" in operator.complete("model-executed", f"{NAME}-load-model", timeout=400)
        assert list(lake.glob("models/*/load-model.parquet"))
        events = kube.get("events", "-n", NAMESPACE)["items"]
        started = {e["involvedObject"]["name"] for e in events if e["reason"] == "Started"}
        assert len([name for name in started if "-exec-" in name]) >= 1, started

        def gone() -> bool:
            return not kube.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=executor")["items"]

        wait_until("no executor is left", gone, timeout=120)


class TestUninstalled:
    def test_leaves_nothing_behind(self, kube: Node, kafka: KafkaCluster, operator: Release, unique: Any) -> None:
        """No Pod, role or finalizer is left; what README.md says is kept can be deleted by one command each."""
        world = World(kafka, kube, operator, unique)  # type: ignore[arg-type] # never closed: there is no operator to
        rebalance, plan = _in_flight(world, "last", CRAWL)
        rebalance.patch(throttle=FAST)
        _assert_carried_out(world, rebalance, plan)
        operator.uninstall()
        ours = ("-l", f"app.kubernetes.io/instance={NAME}", "-o", "name")
        kinds = kube.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        left = kube.kubectl("get", ",".join(kinds), "--all-namespaces", *ours).split()
        assert all(name.startswith("customresourcedefinition") for name in left), left
        wait_until("the Pods of its Jobs are gone", lambda: not kube.get("pods", "-n", NAMESPACE)["items"])
        assert "finalizers" not in rebalance.get()["metadata"]
        kube.kubectl("delete", "-f", str(ROOT / "crds"), "--timeout=60s", timeout=90)
        kube.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s", timeout=150)
        world.assert_tidy()


def _enable_pipeline(world: World, kube: Node, operator: Release, **more: Any) -> Path:
    """Upgrade the release to one with the pipeline, whose lake is a directory of the node; returns that."""
    lake = Path(kube.directory, "lake")
    if not lake.exists():
        lake.mkdir()
        lake.chmod(0o777)
        kube.apply(volume("lake", lake))
    values = Path(kube.directory, "pipeline.yaml")
    pipeline = {
        "enabled": True,
        "clusters": [{"name": "main", "bootstrapServers": world.kafka.bootstrap_servers}],
        "lake": {"existingClaim": "lake"},
        "sampler": {"count": 2, "interval": "1s"},
        **more,
    }
    values.write_text(yaml.safe_dump({"pipeline": pipeline, "strategy": {"type": "Recreate"}}))
    operator.upgrade(f"--values {values}")
    return lake


def _in_flight(
    world: World, name: str, throttle: Mapping[str, str], topic: str = ""
) -> tuple[Rebalance, dict[str, Any]]:
    """A rebalance of a topic, or of a new one, with long-running copies in flight; returns it and its plan."""
    topic = topic or world.skewed(name, *[BIG] * 6)
    before = world.judge.describe_topics(topic)
    rebalance = world.rebalance(name, topic, throttle=throttle)
    plan = world.planned(rebalance, before)
    rebalance.until("copies in flight", lambda status: status.get("currentBatchSize"))
    return rebalance, plan


def _assert_carried_out(world: World, rebalance: Rebalance, plan: Mapping[str, Any]) -> None:
    """Kafka's tools confirm the plan; no throttle or reassignment is left. No transition was reported twice."""
    rebalance.wait_for("Succeeded")
    world.assert_reached(targets(plan))
    assert rebalance.status["plan"]["hash"] == plan["summary"]["hash"]
    assert [reason for reason in rebalance.events() if reason != "Planning"] == ["Rebalancing", "Succeeded"]


def _may(kube: Node, *question: str) -> bool:
    with contextlib.suppress(KubectlError):  # "no", with exit code 1
        return kube.kubectl("auth", "can-i", *question).strip() == "yes"
    return False
