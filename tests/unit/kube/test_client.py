"""What answers where the API server should be."""

import asyncio
import contextlib
import json
import threading
import tracemalloc
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from kubernetes import client

from kafka_rebalance.api.overrides import MAX_TEXT
from kafka_rebalance.api.v1alpha1 import COMPLETED_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.heartbeat import heard_by
from kafka_rebalance.kube.api_errors import KindNotFound, from_response
from kafka_rebalance.kube.client import KubeClient


class Page(BaseHTTPRequestHandler):
    """A proxy's page, with the status of a success."""

    status, content = 200, b"<html>please log in</html>"

    def do_GET(self):
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.content)

    def do_PATCH(self):
        self.do_GET()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def answering(page, kind=HTTPServer):
    """The address of a server with this page."""
    with kind(("127.0.0.1", 0), page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def proxy():
    with answering(Page) as address:
        yield address


async def test_an_answer_that_is_no_json(proxy):
    """It is no answer of the API server: retried, and no defect of ours."""
    kube = KubeClient(client.Configuration(host=proxy), "kafka-rebalance")
    with pytest.raises(Transient, match="answers without JSON") as failed:
        await kube.list_resources("kafkarebalances")
    assert failed.value.reason == "ApiServerUnreachable"
    await kube.close()


async def test_a_call_that_fails_is_a_beat(proxy):
    """It has ended: the round that it belongs to goes on."""
    kube, beats = KubeClient(client.Configuration(host=proxy), "kafka-rebalance"), []
    with heard_by(lambda: beats.append(1)), pytest.raises(Transient):
        await kube.list_resources("kafkarebalances")
    assert beats == [1]
    await kube.close()


class Pages(BaseHTTPRequestHandler):
    """Two pages with a resource each, whose metadata is as long as the API server permits."""

    def do_GET(self):
        asked = parse_qs(urlsplit(self.path).query)
        number, more = (2, "") if "continue" in asked else (1, "next")
        assert asked["limit"] == ["20"]
        annotations = {"other": "x" * 250_000, COMPLETED_ANNOTATION: "x" * 5_000}
        metadata = {"name": f"r{number}", "labels": {"l": "x"}, "managedFields": [{}], "annotations": annotations}
        page = {"metadata": {"continue": more}, "items": [{"metadata": metadata, "spec": {"a": 1}}]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(page).encode())

    def log_message(self, *_):
        pass


async def test_a_list():
    """Read in pages, without what the operator does not use: all of it together would not fit into its memory."""
    with answering(Pages) as address:
        kube = KubeClient(client.Configuration(host=address), "kafka-rebalance")
        first, second = await kube.list_resources("kafkarebalances")
        await kube.close()
    assert (first["metadata"]["name"], second["metadata"]["name"]) == ("r1", "r2")
    assert first["metadata"].keys() == {"name", "annotations"}
    assert first["spec"] == {"a": 1}
    assert first["metadata"]["annotations"] == {COMPLETED_ANNOTATION: "x" * (MAX_TEXT + 1)}


FIELDS = ",".join(f'"f:{number}":{{}}' for number in range(20_000))
WIDE = "".join(f',{{"metadata":{{"managedFields":[{{{FIELDS}}}],"name":"r{number}"}}}}' for number in range(20))[1:]


class WidePage(BaseHTTPRequestHandler):
    """A page of resources with thousands of managed fields each, as the API server writes it."""

    page = f'{{"apiVersion":"v1","items":[{WIDE}],"kind":"L","metadata":{{"continue":""}}}}'.encode()

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_):
        pass


async def test_the_memory_for_a_list():
    """The values of one resource are freed before those of the next are made: users choose how many there are."""
    with answering(WidePage) as address:
        kube = KubeClient(client.Configuration(host=address), "kafka-rebalance")
        await kube.list_resources("kafkarebalances")
        tracemalloc.start()
        found = await kube.list_resources("kafkarebalances")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        await kube.close()
    assert [row["metadata"] for row in found] == [{"name": f"r{number}"} for number in range(20)]
    assert most < 4 * len(WidePage.page)


async def test_slow_writes_to_the_objects_of_a_namespace():
    """Only two are under way at a time. Reads, other namespaces and the operator's own records are not held up."""
    under_way, most, answer = [], [], threading.Event()

    class SlowInOne(Page):
        content = b"{}"

        def do_PATCH(self):
            under_way.append(self.path)
            most.append(len(under_way))
            answer.wait()
            under_way.pop()
            self.do_GET()

    with answering(SlowInOne, ThreadingHTTPServer) as address:
        kube = KubeClient(client.Configuration(host=address), "kafka-rebalance")
        slow = [asyncio.create_task(kube.patch_status("kafkarebalances", "slow", f"r{n}", {})) for n in range(20)]
        await asyncio.sleep(0)
        assert await kube.get("kafkarebalances", "other", "r") == {}
        assert await kube.get("kafkarebalances", "slow", "r") == {}
        assert await kube.get_config_map("ledger") == {}
        assert await kube.get("kafkarebalances", "kafka-rebalance", "r") == {}
        answer.set()
        await asyncio.gather(*slow)
        await kube.close()
    assert max(most) <= 2


async def test_slow_reads_of_secrets():
    """They do not hold up the other reads about the objects of a namespace."""
    answer = threading.Event()

    found = {"metadata": {"uid": "u-1"}}

    class SlowSecrets(Page):
        content = json.dumps(found).encode()

        def do_GET(self):
            if "/secrets/" in self.path:
                answer.wait()
            super().do_GET()

    with answering(SlowSecrets, ThreadingHTTPServer) as address:
        kube = KubeClient(client.Configuration(host=address), "kafka-rebalance")
        slow = [asyncio.create_task(kube.read_secret("slow", f"s{number}")) for number in range(3)]
        try:
            await asyncio.sleep(0)
            assert await kube.get("kafkarebalances", "slow", "r") == found
        finally:
            answer.set()
            await asyncio.gather(*slow)
            await kube.close()


class TestNotFound:
    """Only an answer that names the object says that it is gone."""

    @pytest.mark.parametrize(
        "content",
        [
            b"404 page not found\n",
            b'{"kind":"Status","reason":"NotFound","message":"the server could not find the resource","details":{}}',
        ],
    )
    async def test_a_kind_that_is_not_served(self, content):
        """Nothing is known of the object: a CRD that is installed again, or a proxy, answers so for a moment."""
        with answering(type("Missing", (Page,), {"status": 404, "content": content})) as address:
            kube = KubeClient(client.Configuration(host=address), "kafka-rebalance")
            with pytest.raises(KindNotFound):
                await kube.patch_status("kafkarebalances", "kafka", "r", {"status": {}})
            with pytest.raises(KindNotFound):
                await kube.get("kafkarebalances", "kafka", "r")
            await kube.close()

    async def test_an_object_that_is_gone(self):
        content = b'{"kind":"Status","reason":"NotFound","details":{"name":"r","kind":"kafkarebalances"}}'
        with answering(type("Missing", (Page,), {"status": 404, "content": content})) as address:
            kube = KubeClient(client.Configuration(host=address), "kafka-rebalance")
            assert await kube.patch_status("kafkarebalances", "kafka", "r", {"status": {}}) is False
            assert await kube.get("kafkarebalances", "kafka", "r") is None
            await kube.close()


@pytest.mark.parametrize("code", [410, 429, 500, 503])
def test_a_busy_server_is_asked_again(code):
    """410: what the next page of a list continues is gone, so the list is read again."""
    error = from_response("GET kafkarebalances", code, b"")
    assert isinstance(error, Transient)
    assert error.reason == "ApiServerBusy"
