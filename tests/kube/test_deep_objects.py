"""Objects that are nested too deeply for Python's parsers, on a real API server with the real watch."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from tests.kube.namespaces import Namespace, body, resource

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.app.resource_watch import Watch
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.object_json import read_object_json

pytestmark = pytest.mark.apiserver

KIND = "KafkaRebalance"


def deep(name: str) -> str:
    """A KafkaRebalance with managed fields that are nested deeply."""
    fields = {"manager": "user", "operation": "Update", "apiVersion": "kafkarebalance.dev/v1alpha1"}
    fields |= {"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": "FIELDS"}
    found = body(KIND, name, {})
    text = json.dumps({**found, "metadata": {**found["metadata"], "managedFields": [fields]}})
    return text.replace('"FIELDS"', '{"f:a":' * 9000 + "{}" + "}" * 9000)


@pytest.fixture
def stored(namespace: Namespace) -> Iterator[Namespace]:
    """Two resources, the first of them nested deeply. Python cannot parse the answer to their deletion either."""
    path = f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{namespace.name}/{REBALANCES}"
    namespace.kubectl("create", "--raw", path, "-f", "-", stdin=deep("deep"))
    namespace.kubectl("apply", "-f", "-", stdin=resource(KIND, "other", {}))
    yield namespace
    namespace.kubectl("delete", "--raw", path)


async def test_the_client(stored: Namespace, client: KubeClient) -> None:
    """The client reads the object alone and in a list."""
    found = {item["metadata"]["name"]: item for item in await client.list_resources(REBALANCES, stored.name)}
    assert found.keys() == {"deep", "other"}
    alone = await client.get(REBALANCES, stored.name, "deep")
    assert alone is not None
    assert alone["spec"] == found["deep"]["spec"] == found["other"]["spec"]
    assert "managedFields" not in alone["metadata"]
    path = f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{stored.name}/{REBALANCES}/deep"
    assert '"manager":"user"' in stored.kubectl("get", "--raw", path)


def test_the_form_of_lists(stored: Namespace) -> None:
    """The items are found before they are parsed: all of them together may take too much memory."""
    path = f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{stored.name}/{REBALANCES}"
    answer = stored.kubectl("get", "--raw", path).encode()
    found: list[object] = []
    with pytest.raises(ValueError, match="Extra data"):
        read_object_json(answer + b"}", found.append)
    assert len(found) == 2


async def test_the_watch(stored: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch reads it in its first list and in events, and continues with the others."""
    monkeypatch.setenv("KUBECONFIG", str(stored.cluster.admin_kubeconfig))
    names: set[str] = set()
    news = asyncio.Event()

    def seen(_plural: str, found: dict[str, object], _deleted: bool) -> None:
        names.add(found["metadata"]["name"])  # type: ignore[index]
        news.set()

    watch = Watch([stored.name], seen)
    watch.start()

    async def until(*expected: str) -> None:
        async with asyncio.timeout(120):
            while not names >= set(expected):
                await news.wait()
                news.clear()

    try:
        await until("deep", "other")
        path = f"/apis/kafkarebalance.dev/v1alpha1/namespaces/{stored.name}/{REBALANCES}"
        await asyncio.to_thread(stored.kubectl, "create", "--raw", path, "-f", "-", stdin=deep("later"))
        await until("later")
        await asyncio.to_thread(stored.kubectl, "apply", "-f", "-", stdin=resource(KIND, "last", {}))
        await until("last")
    finally:
        await watch.stop()
