"""What answers where the API server should be."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from kubernetes import client

from kafka_rebalance.errors import Transient
from kafka_rebalance.heartbeat import heard_by
from kafka_rebalance.kube.client import KubeClient


class Page(BaseHTTPRequestHandler):
    """A proxy's page, with the status of a success."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>please log in</html>")

    def log_message(self, *_):
        pass


@pytest.fixture
def proxy():
    """Its address."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


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
