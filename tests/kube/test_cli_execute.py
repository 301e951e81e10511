"""kafka-rebalance execute on a real API server: what is created, and that nothing is left of what is half refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kube.namespaces import Namespace

from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.errors import Conflict
from kafka_rebalance.kube.submission import submit

pytestmark = pytest.mark.apiserver


def command(namespace: Namespace, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("kafka-rebalance"))
    argv = [program, "execute", "--bootstrap-servers", "kafka:9092", "-n", namespace.name, *arguments]
    env = {**os.environ, "KUBECONFIG": str(namespace.cluster.admin_kubeconfig)}
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=False)


def manifests(namespace: Namespace, spec: dict[str, object]) -> list[dict[str, object]]:
    metadata = {"name": "a", "namespace": namespace.name}
    kafka = {"bootstrapServers": "kafka:9092"}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"assignment.json": "{}"}},
        {
            "apiVersion": "kafkarebalance.dev/v1alpha1",
            "kind": "KafkaRebalance",
            "metadata": metadata,
            "spec": {"kafka": kafka, **spec},
        },
    ]


class TestApply:
    def test_a_decommission_is_created_once(self, namespace: Namespace) -> None:
        """The same order again fails: it is there."""
        order = ("--decommission-broker", "4", "--throttle", "50Mi", "--name", "a", "--apply")
        done = command(namespace, *order)
        assert (done.returncode, done.stderr) == (0, "")
        spec = namespace.get("kafkarebalances")["spec"]
        assert spec["brokers"]["decommission"] == [4]
        assert spec["throttle"] == {"leaderRate": "50Mi", "followerRate": "50Mi"}
        again = command(namespace, *order)
        assert again.returncode == 1
        assert again.stderr.startswith("failed (Conflict): ")

    def test_what_is_printed_can_be_applied(self, namespace: Namespace) -> None:
        """By kubectl, which validates strictly."""
        printed = command(namespace, "--broker-list", "1,2", "--name", "a")
        namespace.kubectl("apply", "-f", "-", stdin=printed.stdout)
        assert namespace.get("kafkarebalances")["spec"]["brokers"]["include"] == [1, 2]


class TestSubmit:
    async def test_all(self, namespace: Namespace, client: KubeClient) -> None:
        await submit(client, manifests(namespace, {}))
        found = await client.get_config_map("a")
        assert found is not None
        assert found["data"] == {"assignment.json": "{}"}
        assert namespace.get("kafkarebalances")

    async def test_or_nothing(self, namespace: Namespace, client: KubeClient) -> None:
        """A KafkaRebalance that is refused takes its lists with it."""
        with pytest.raises(Refused):
            await submit(client, manifests(namespace, {"strategy": "Nonsense"}))
        with pytest.raises(Refused):
            await submit(client, manifests(namespace, {"misspelt": 1}))
        assert await client.get_config_map("a") is None

    async def test_what_was_there_stays(self, namespace: Namespace, client: KubeClient) -> None:
        """Somebody else's ConfigMap of that name is neither used nor deleted."""
        lists, _ = manifests(namespace, {})
        await client.create_config_map(lists)
        with pytest.raises(Conflict):
            await submit(client, manifests(namespace, {}))
        assert await client.get_config_map("a") is not None
