"""Every permission of the chart's roles is used by the operator, and it uses no other: by the API server's audit log.

The whole operator runs, with the shipped account and roles; only Kafka is in memory.
"""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientSession
from e2e.bench.audit import AuditLog, Request
from e2e.bench.kube import OwnKubeCluster
from e2e.bench.waiting import wait_until
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.kube.installed_roles import install_roles
from tests.kube.namespaces import Namespace, body

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.app import process
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.kube.rights import Right, needed
from kafka_rebalance.reasons import Reason

pytestmark = pytest.mark.apiserver

HERE = "in-memory:9092"
ASSIGNMENT = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2]}]}
CONNECTION = {"bootstrapServers": HERE, "sasl": {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "user"}}}
SPEC: dict[str, Any] = {
    "kafka": {"connectionRef": {"name": "named"}},
    "strategy": "Assignment",
    "assignment": {"configMapRef": {"name": "lists", "key": "lists.json"}},
}
LOOK_AT_THE_CRD = Right("get", "apiextensions.k8s.io", "customresourcedefinitions", None)
"""Asked for, and not granted, where single namespaces are watched: no cluster-wide right is worth the answer."""


class Brokers(KafkaInMemory):
    """Copies to broker 2 stay in flight until `arrive`."""

    def __init__(self) -> None:
        super().__init__((1, 2), t=((1,),))
        self.slow = {2}

    async def close(self) -> None:
        """Stay: the next client finds the same brokers."""


class Operator:
    """The program in this process, as often as it is started."""

    def __init__(self, own: str, namespaces: tuple[str, ...], report_port: int = 0) -> None:
        self._settings = process.Settings("one", namespaces, own, lease_seconds=3, report_port=report_port)

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(process.run_operator(self._settings))

    async def __aexit__(self, *_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await self._task


class RightsInUse:
    """The requests of the operator's account since then, compared with its rights."""

    def __init__(self, log: AuditLog, rights: tuple[Right, ...]) -> None:
        self._log = log
        self._rights = frozenset(rights)

    def unused(self) -> set[Right]:
        """If two rights allow the same request, the one in a namespace counts as used."""
        return set(self._rights - {self._right(request) for request in self._log.requests() if request.binding})

    def refused(self) -> set[Right]:
        """Requests that no role of the operator allows."""
        requests = self._log.requests()
        return {self._right(r) for r in requests if not r.binding or self._right(r) not in self._rights}

    def _right(self, request: Request) -> Right:
        here = Right(request.verb, request.group, request.resource, request.namespace or None)
        return here if here in self._rights else Right(request.verb, request.group, request.resource, None)


def state(namespace: Namespace, plural: str) -> str:
    """The reason of Ready, empty as long as there is none."""
    conditions = namespace.get(plural).get("status", {}).get("conditions", ())
    return next((str(c["reason"]) for c in conditions if c["type"] == "Ready"), "")


async def until(what: str, holds: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, what, holds)


@pytest.mark.parametrize("scope", ["all namespaces", "single namespaces"])
async def test_each_is_used_and_no_other(
    cluster: OwnKubeCluster, own: Namespace, report_port: int, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rebalance with connection, Secret and ConfigMap; throttles, a restart, deletions, a namespace that ends."""
    namespace, brokers = Namespace.create(cluster), Brokers()
    namespaces = (namespace.name,) if scope == "single namespaces" else ()
    install_roles(own, namespaces, "report.enabled=true")
    account = cluster.service_account_kubeconfig(own.name, own.name)
    log = AuditLog(cluster.audit_log, f"system:serviceaccount:{own.name}:{own.name}")
    rights = RightsInUse(log, needed(namespaces, own.name, reports=True))

    def connect(settings: ConnectionSettings, _fence: Fence) -> Brokers:
        if settings.bootstrap_servers != HERE:
            raise Transient(Reason.KAFKA_UNREACHABLE, "not a cluster of this test", retry_after=60)
        return brokers

    monkeypatch.setenv("KUBECONFIG", str(account))
    monkeypatch.setattr(process, "connect", connect)
    namespace.kubectl("create", "secret", "generic", "user", "--from-literal=username=u", "--from-literal=password=p")
    namespace.kubectl("create", "configmap", "lists", f"--from-literal=lists.json={json.dumps(ASSIGNMENT)}")
    named = {**body("KafkaConnection", "named", {}), "spec": CONNECTION}
    namespace.kubectl("apply", "-f", "-", stdin=json.dumps(named))
    namespace.apply("KafkaRebalance", SPEC)
    async with Operator(own.name, namespaces, report_port):
        await until("a copy is in flight", lambda: bool(brokers.flying))
        namespace.kubectl("create", "serviceaccount", "reader")
        allowed = ("--clusterrole=view", "--serviceaccount", f"{namespace.name}:reader")
        namespace.kubectl("create", "rolebinding", "reader", *allowed)
        token = namespace.kubectl("create", "token", "reader").strip()
        url = f"http://127.0.0.1:{report_port}/namespaces/{namespace.name}/kafkarebalances/a"
        async with ClientSession(headers={"Authorization": f"Bearer {token}"}) as browser, browser.get(url) as answer:
            assert answer.status == 403  # the role view does not cover our resources
    # The next operator asks whether the resource of the open run, and one of a cluster that is away, still exist.
    namespace.apply("KafkaReassignmentThrottle", {"kafka": SPEC["kafka"], "leaderRate": "1Mi"})
    namespace.apply("KafkaReassignmentThrottle", {"leaderRate": "1Mi"}, "away")
    async with Operator(own.name, namespaces):
        await until("the throttle is applied", lambda: state(namespace, REASSIGNMENT_THROTTLES) == "Applied")
        namespace.kubectl("delete", REBALANCES, "a", "--wait=false")
        await until("it is rolled back", lambda: not brokers.flying)
        await until("it is gone", lambda: not namespace.kubectl("get", REBALANCES, "-o", "name"))
        brokers.arrive()
        namespace.apply("KafkaRebalance", {**SPEC, "ttlSecondsAfterFinished": 0})
        await until("it has ended and is gone", lambda: not namespace.kubectl("get", REBALANCES, "-o", "name"))
        brokers.assign("t", 0, 1)
        brokers.slow = {2}
        namespace.apply("KafkaRebalance", SPEC)
        await until("a copy is in flight", lambda: bool(brokers.flying))
        # Events about what it does to the resources of this namespace go to the operator's own.
        namespace.delete()
        await until("every right is used", lambda: not rights.unused())
    for kind in ("role", "rolebinding") if namespaces else ():
        namespace.kubectl("patch", kind, own.name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert rights.refused() == ({LOOK_AT_THE_CRD} if namespaces else set())
