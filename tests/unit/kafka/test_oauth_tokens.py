"""Tokens from a token endpoint: when they are requested, and what is said if there is none."""

import base64
import json
import logging
import socket
import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote

import pytest
from tests.fakes import der

from kafka_rebalance.errors import Permanent, RebalanceError, Transient
from kafka_rebalance.kafka import oauth_tokens
from kafka_rebalance.kafka.oauth_tokens import TokenSource
from kafka_rebalance.kafka.settings import OAuthClient

SECRET = "hunter2 +/%:é"
TOKEN = "eyJ.secret.token"
LOGIN = base64.b64encode(f"an%20id:{quote(SECRET, safe='')}".encode()).decode()


class Endpoint(ThreadingHTTPServer):
    """Answers every request with ``status`` and ``body``, and records the requests."""

    def __init__(self) -> None:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                endpoint.requests.append((dict(self.headers), form))
                self.send_response(endpoint.status)
                if endpoint.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                for _ in range(endpoint.drops):
                    self.wfile.write(b" ")
                    if endpoint.ended.wait(0.05):
                        return
                body = endpoint.body
                self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

            do_GET = do_POST  # noqa: N815 - the base class names it

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.drops, self.ended = 0, threading.Event()
        """How many bytes come before the body, one every 50 ms, until it has ended."""
        self.requests: list[tuple[dict[str, str], dict[str, list[str]]]] = []
        self.status, self.body = 200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 100}

    status: int
    body: Any


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


class World:
    """A source of tokens at ``now``."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.now, self.endpoint = 1000.0, endpoint
        address = f"http://127.0.0.1:{endpoint.server_address[1]}/token"
        self.client = OAuthClient(address, "an id", SECRET, scope="kafka admin")
        self.tokens = TokenSource(self.client, lambda: self.now)

    def failed(self) -> RebalanceError:
        with pytest.raises(RebalanceError) as failed:
            self.tokens.token()
        assert failed.value is self.tokens.failure
        assert self.client.token_endpoint in failed.value.message
        shown = "".join(traceback.format_exception(failed.value))
        assert not any(secret in shown for secret in (TOKEN, SECRET, "hunter2"))
        return failed.value


@pytest.fixture
def world(endpoint: Endpoint) -> World:
    return World(endpoint)


class TestRequest:
    """RFC 6749, sections 2.3.1 and 4.4.2."""

    def test_form_and_credentials(self, world: World) -> None:
        assert world.tokens.token().value == TOKEN
        ((headers, form),) = world.endpoint.requests
        assert form == {"grant_type": ["client_credentials"], "scope": ["kafka admin"]}
        kind, encoded = headers["Authorization"].split()
        login = base64.b64decode(encoded).decode("ascii")
        assert (kind, [unquote(part) for part in login.split(":")]) == ("Basic", ["an id", SECRET])

    def test_without_a_scope(self, world: World) -> None:
        TokenSource(replace(world.client, scope=None)).token()
        assert world.endpoint.requests[0][1] == {"grant_type": ["client_credentials"]}


class TestRenewal:
    """A token is kept until three quarters of its lifetime are over."""

    def test_when(self, world: World) -> None:
        first = world.tokens.token()
        assert (first.refresh_at, first.expires_at) == (1075.0, 1100.0)
        world.now = 1074.9
        assert world.tokens.token() is first
        world.now = 1075.0
        assert world.tokens.token().expires_at == 1175.0
        assert len(world.endpoint.requests) == 2

    def test_without_a_lifetime(self, world: World) -> None:
        """RFC 6749 only recommends expires_in."""
        world.endpoint.body = {"access_token": TOKEN}
        assert world.tokens.token().expires_at == 1300.0

    @pytest.mark.parametrize("status", [500, 401])
    def test_a_failure_before_the_token_expires(
        self, world: World, status: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The old token is used for as long as it is valid: the brokers accept it."""
        first = world.tokens.token()
        world.endpoint.status = status
        world.now = 1080.0
        with caplog.at_level(logging.DEBUG):
            assert world.tokens.token() is first
        assert world.tokens.failure is None
        assert "valid for 20 s" in caplog.text
        assert not any(secret in caplog.text for secret in (TOKEN, SECRET, "hunter2"))
        world.now = 1100.0
        world.failed()
        world.endpoint.status = 200
        world.now = 1102.0
        assert world.tokens.token().expires_at == 1202.0
        assert world.tokens.failure is None

    def test_a_token_that_expires_right_after_a_failure(self, world: World) -> None:
        """The failure is reported, although no new request is due."""
        world.tokens.token()
        world.endpoint.status, world.now = 401, 1099.0
        world.tokens.token()
        world.now = 1100.0
        assert world.failed().reason == "KafkaAuthenticationFailed"
        assert len(world.endpoint.requests) == 2

    def test_a_failure_is_not_repeated_at_once(self, world: World) -> None:
        """Clients of Kafka request a token for every attempt to connect."""
        world.endpoint.status = 401
        for at in (1000.0, 1000.1, 1001.9):
            world.now = at
            world.failed()
        assert len(world.endpoint.requests) == 1
        world.now = 1002.0
        world.failed()
        assert len(world.endpoint.requests) == 2

    def test_many_threads_share_one_request(self, world: World) -> None:
        found: list[str] = []
        threads = [threading.Thread(target=lambda: found.append(world.tokens.token().value)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (found, len(world.endpoint.requests)) == ([TOKEN] * 8, 1)


class TestFailures:
    """Refused credentials need a person; everything else is retried. No message has a secret."""

    @pytest.mark.parametrize(
        ("status", "body", "said"),
        [
            (401, {"error": "invalid_client", "error_description": "no"}, "HTTP status 401 (invalid_client: no)"),
            (400, {"error": "invalid_scope"}, "HTTP status 400 (invalid_scope)"),
            (400, b"\xff not json", "HTTP status 400."),
            (403, ["a list"], "HTTP status 403."),
            (401, {"error": "x", "error_description": f"secret {SECRET} is wrong"}, "secret ••• is wrong"),
            (401, {"error": "x" * 5000}, "x" * 300),
            (401, {"error": "x" * 290 + SECRET}, "x" * 290 + "•••"),
            (401, {"error": f"wrong {quote(SECRET, safe='')}"}, "wrong •••"),
            (401, {"error": f"Basic {LOGIN} is wrong"}, "Basic ••• is wrong"),
            (401, {"error": "two\nlines"}, "(twolines)"),
            (302, b"", "redirects are not followed"),
            (200, b"not json", "not JSON with an access_token"),
            (200, {"token": "x"}, "not JSON with an access_token"),
            (200, {"access_token": TOKEN, "expires_in": "soon"}, "not JSON with an access_token"),
            (200, {"access_token": TOKEN, "expires_in": TOKEN}, "not JSON with an access_token"),
            (200, {"access_token": 5}, "no usable access_token"),
            (200, {"access_token": f"{TOKEN}\x01auth=other"}, "no usable access_token"),
            (200, {"access_token": TOKEN, "expires_in": -1}, "no usable access_token"),
            (200, b'{"access_token": "x", "expires_in": 1e999}', "no usable access_token"),
            (204, b"", "HTTP status 204"),
        ],
    )
    def test_refused(self, world: World, status: int, body: Any, said: str) -> None:
        world.endpoint.status, world.endpoint.body = status, body
        failed = world.failed()
        assert isinstance(failed, Permanent)
        assert failed.reason == "KafkaAuthenticationFailed"
        assert said in failed.message
        assert len(failed.message) < 600
        assert "hunter2" not in failed.message
        assert TOKEN not in repr(failed)
        assert len(world.endpoint.requests) == 1

    @pytest.mark.parametrize("status", [500, 503, 429])
    def test_later(self, world: World, status: int) -> None:
        world.endpoint.status = status
        failed = world.failed()
        assert isinstance(failed, Transient)
        assert (failed.reason, f"HTTP status {status}" in failed.message) == ("TokenUnavailable", True)

    @pytest.mark.parametrize(
        "body",
        [b'{"access_token": "x", "expires_in": 1' + b"0" * 400 + b"}", b"[" * 900_000],
        ids=["a lifetime beyond all numbers", "nested without end"],
    )
    def test_an_answer_that_breaks_its_reader(self, world: World, body: bytes) -> None:
        """It is retried, and not at once. A traceback has nothing of the error of the reader."""
        world.endpoint.body = body
        for _ in range(2):
            failed = world.failed()
            assert (failed.reason, "too large" in failed.message) == ("TokenUnavailable", True)
            assert failed.__suppress_context__
        assert len(world.endpoint.requests) == 1
        world.endpoint.status, world.now = 400, 1002.0
        assert world.failed().reason == "KafkaAuthenticationFailed"

    def test_no_server(self, world: World) -> None:
        world.endpoint.server_close()
        failed = world.failed()
        assert isinstance(failed, Transient)
        assert (failed.reason, "Connect call failed" in failed.message) == ("TokenUnavailable", True)
        assert " object at " not in failed.message

    @pytest.mark.parametrize("banner", [b"SSH-2.0-OpenSSH_9.2 inside\r\n", b"-ERR unknown command 'POST' inside\r\n"])
    def test_a_server_of_another_kind(self, banner: bytes) -> None:
        """Its answer is not quoted, because the author of a resource chooses the server."""
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve() -> None:
                accepted, _ = server.accept()
                with accepted:
                    accepted.recv(10_000)
                    accepted.sendall(banner)

            serving = threading.Thread(target=serve)
            serving.start()
            tokens = TokenSource(OAuthClient(f"http://127.0.0.1:{server.getsockname()[1]}/", "i", SECRET))
            with pytest.raises(Transient) as failed:
                tokens.token()
            serving.join()
        assert failed.value.message.endswith(": no readable HTTP answer (ClientResponseError)")

    def test_an_answer_that_does_not_end(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """The time is limited as a whole, not for each part."""
        monkeypatch.setattr(oauth_tokens, "_TIMEOUT_SECONDS", 0.3)
        world.endpoint.drops = 10_000
        failed = world.failed()
        world.endpoint.ended.set()
        assert (failed.reason, "no answer in" in failed.message) == ("TokenUnavailable", True)

    def test_an_answer_without_bounds(self, world: World) -> None:
        world.endpoint.body = b"x" * 3_000_000
        assert "the answer is too long" in world.failed().message

    def test_an_address_that_cannot_be_used(self) -> None:
        with pytest.raises(Transient, match="No token from https://a:port/"):
            TokenSource(OAuthClient("https://a:port/", "i", "s")).token()

    def test_a_ca_that_openssl_does_not_decode(self, world: World) -> None:
        """It is not decoded before: OAuthClient is made in the event loop of the operator."""
        tokens = TokenSource(replace(world.client, ca_pem=der.pem(b"CA")))
        with pytest.raises(
            Permanent, match=r"the CA of the OAuth server, in sasl\.caSecretRef or .* is not a PEM"
        ) as bad:
            tokens.token()
        assert (bad.value.reason, world.endpoint.requests) == ("KafkaSettingsInvalid", [])

    def test_the_token_is_not_shown(self, world: World) -> None:
        assert TOKEN not in repr(world.tokens.token())
