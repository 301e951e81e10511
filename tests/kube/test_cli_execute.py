"""kafka-rebalance execute on a real API server: what it creates, what it does not change, and repeated calls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kube.namespaces import Namespace

from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.submission import submit

pytestmark = pytest.mark.apiserver


def command(namespace: Namespace, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("kafka-rebalance"))
    argv = [program, "execute", "--bootstrap-servers", "kafka:9092", "-n", namespace.name, *arguments]
    env = {**os.environ, "KUBECONFIG": str(namespace.cluster.admin_kubeconfig)}
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=False)


def manifests(namespace: Namespace, spec: dict[str, object] | None = None) -> list[dict[str, object]]:
    """A KafkaRebalance and its lists, in submission order."""
    metadata = {"name": "a", "namespace": namespace.name}
    kafka = {"bootstrapServers": "kafka:9092"}
    version = "kafkarebalance.dev/v1alpha1"
    rebalance = {"apiVersion": version, "kind": "KafkaRebalance", "metadata": metadata, "spec": {"kafka": kafka}}
    rebalance["spec"] |= spec or {}
    lists = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True}
    return [rebalance, {**lists, "data": {"assignment.json": "{}"}}]


class TestApply:
    def test_a_decommission_is_created_once(self, namespace: Namespace) -> None:
        """A second call changes nothing; another spec under the same name is refused."""
        order = ("--decommission-broker", "4", "--throttle", "50Mi", "--name", "a", "--apply")
        done = command(namespace, *order)
        assert (done.returncode, done.stderr) == (0, "")
        spec = namespace.get("kafkarebalances")["spec"]
        assert spec["brokers"]["decommission"] == [4]
        assert spec["throttle"] == {"leaderRate": "50Mi", "followerRate": "50Mi"}
        again = command(namespace, *order)
        assert (again.returncode, again.stderr) == (0, "")
        assert "already exists with the same spec" in again.stdout
        other = command(namespace, "--decommission-broker", "5", "--name", "a", "--apply")
        assert other.returncode == 3
        assert other.stderr.startswith(f"refused (AlreadyThere): KafkaRebalance {namespace.name}/a exists with")
        assert namespace.get("kafkarebalances")["spec"] == spec

    def test_what_is_printed_can_be_applied(self, namespace: Namespace) -> None:
        """With kubectl, which validates strictly."""
        printed = command(namespace, "--broker-list", "1,2", "--name", "a")
        namespace.kubectl("apply", "-f", "-", stdin=printed.stdout)
        assert namespace.get("kafkarebalances")["spec"]["brokers"]["include"] == [1, 2]


class TestSubmit:
    async def test_all(self, namespace: Namespace, client: KubeClient) -> None:
        assert (await submit(client, *manifests(namespace))).created
        found = await client.get_config_map("a")
        assert found is not None
        assert found["data"] == {"assignment.json": "{}"}
        assert namespace.get("kafkarebalances")

    async def test_or_nothing(self, namespace: Namespace, client: KubeClient) -> None:
        """If the KafkaRebalance is refused, its lists are not created either."""
        with pytest.raises(Refused):
            await submit(client, *manifests(namespace, {"strategy": "Nonsense"}))
        with pytest.raises(Refused):
            await submit(client, *manifests(namespace, {"misspelt": 1}))
        assert await client.get_config_map("a") is None

    async def test_again(self, namespace: Namespace, client: KubeClient) -> None:
        """Nothing is written; missing lists are created again."""
        await submit(client, *manifests(namespace))
        before = namespace.get("kafkarebalances"), await client.get_config_map("a")
        assert not (await submit(client, *manifests(namespace))).created
        assert (namespace.get("kafkarebalances"), await client.get_config_map("a")) == before
        await client.delete_config_map("a")
        assert not (await submit(client, *manifests(namespace))).created
        assert await client.get_config_map("a") is not None

    async def test_lists_that_a_deleted_one_left(self, namespace: Namespace, client: KubeClient) -> None:
        """As after an attempt that was killed: they have the right content and are not changed."""
        await submit(client, *manifests(namespace))
        namespace.kubectl("delete", "kafkarebalances.kafkarebalance.dev", "a")
        before = await client.get_config_map("a")
        assert (await submit(client, *manifests(namespace))).created
        assert await client.get_config_map("a") == before

    async def test_what_is_somebody_elses_stays(self, namespace: Namespace, client: KubeClient) -> None:
        """A ConfigMap of that name with other content is neither used nor changed; nothing is created."""
        rebalance, lists = manifests(namespace)
        await client.create_config_map({**lists, "data": {"assignment.json": "[]"}})
        with pytest.raises(Refused, match=f"ConfigMap {namespace.name}/a exists with other content"):
            await submit(client, rebalance, lists)
        found = await client.get_config_map("a")
        assert found is not None
        assert found["data"] == {"assignment.json": "[]"}
        assert namespace.kubectl("get", "kafkarebalances.kafkarebalance.dev", "-o", "name") == ""
