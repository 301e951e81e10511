"""Credentials that the operator uses are in nothing that it writes: Events, records, statuses and the log."""

import asyncio
import base64
import gzip
import json
import logging
from urllib.parse import unquote

import pytest
from tests.fakes.der import EC, P256, certificate, oid, pem, private_key
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.shared_clusters import REF

from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.failures import (
    authentication_failed,
    authorization_failed,
    client_ended,
    too_old,
    unreachable,
)

PASSWORD, CLIENT_SECRET, STORE_PASSWORD = "hunter2-hunter2", "correct horse battery", "changeit-changeit"
KEY = pem(private_key(EC, oid(P256), b"hunter2"), "PRIVATE KEY")
SECRETS = (PASSWORD, CLIENT_SECRET, STORE_PASSWORD, "PRIVATE KEY", KEY.splitlines()[1])
STORES = {"user.p12": STORE_PASSWORD.encode(), "user.password": STORE_PASSWORD.encode()}
JAAS = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="my-user" password="{PASSWORD}";'
LOGIN = {"username": b"my-user", "password": f"{PASSWORD}\n".encode(), "sasl.jaas.config": JAAS.encode(), **STORES}
OAUTH = {"clientId": b"operator", "clientSecret": f"{CLIENT_SECRET}\n".encode()}
PAIR = {"tls.crt": certificate("operator").encode(), "tls.key": KEY.encode(), **STORES}
TLS = {"clientSecretRef": {"name": "pair"}}
SCRAM = {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "login"}}
TOKENS = {"mechanism": "OAUTHBEARER", "secretRef": {"name": "oauth"}, "allowPlaintextCredentials": True}


def secrets_of(settings):
    secrets = [settings.password, settings.client_key_pem, settings.oauth and settings.oauth.client_secret]
    return [secret for secret in secrets if secret]


def quoted(settings):
    """As a client library may quote its configuration: as it is, stripped, or escaped."""
    return " ".join(f"{secret} {secret.strip()}; {secret!r}" for secret in secrets_of(settings))


@pytest.fixture
def written(world, monkeypatch):
    """Everything that is written to the API server from now on; records are decompressed."""
    texts = []
    put, status = KubeInMemory._put, KubeInMemory.patch_status

    def recorded(kube, name, body):
        payloads = body.get("binaryData", {}).values()
        texts.extend(gzip.decompress(base64.b64decode(payload)).decode() for payload in payloads)
        texts.append(json.dumps(body, default=str))
        return put(kube, name, body)

    async def reported(kube, *where):
        texts.append(json.dumps(where, default=str))
        return await status(kube, *where)

    monkeypatch.setattr(KubeInMemory, "_put", recorded)
    monkeypatch.setattr(KubeInMemory, "patch_status", reported)
    world.kube.secrets = {("k", "login"): LOGIN, ("k", "oauth"): OAUTH, ("k", "pair"): PAIR}
    return texts


def connection(world, **spec):
    """A KafkaConnection with these fields."""
    world.connection(see=False)
    world.edit(CONNECTIONS, "k", "prod", **spec)


def leaked(written, world, log):
    """The secrets in what was written, in Events and in the log."""
    events = [message for _, message in world.kube.events]
    assert events
    said = "\n".join([*written, *events, log.text])
    return [secret for secret in SECRETS if secret in said or secret in said.replace("\\n", "\n")]


@pytest.mark.parametrize("sasl", [SCRAM, {**TOKENS, "tokenEndpoint": "https://login/token"}])
async def test_of_a_cluster_in_use(world, written, caplog, sasl):
    """Its binding, plan, run, origins, throttle ledger, statuses and Events name Secrets only."""
    caplog.set_level(logging.DEBUG)
    used, given = [], world.connect
    world.connect = lambda settings, owner: (used.append(settings), given(settings, owner))[1]
    await world.supervisor.stop()
    world.begin()
    connection(world, tls=TLS, sasl=sasl)
    await world.draining(kafka=REF)
    on_record = world.binding["connection"]
    world.real.arrive()
    await world.until(lambda: world.state("a") == "Succeeded")
    await world.deleted("a")
    kinds = {name.partition("-")[0] for name in world.kube.config_maps}
    assert {"binding", "run"} <= kinds
    assert set(secrets_of(used[0])) in ({KEY, f"{PASSWORD}\n"}, {KEY, f"{CLIENT_SECRET}\n"})
    assert leaked(written, world, caplog) == []
    assert json.loads(on_record)["sasl"]["secretRef"]["name"] == sasl["secretRef"]["name"]


FAILURES = {
    "KafkaUnreachable": lambda settings, said: unreachable(settings, "connect", said, 0.01),
    "KafkaClientEnded": lambda settings, said: client_ended(settings, "describe_cluster", said, 0.01),
    "KafkaAuthenticationFailed": authentication_failed,
    "KafkaAuthorizationFailed": lambda settings, said: authorization_failed(settings, "describe the cluster", said),
    "KafkaTooOld": lambda settings, said: too_old(settings, "describe the cluster", said),
}


@pytest.mark.parametrize("reason", FAILURES)
@pytest.mark.parametrize("sasl", [SCRAM, {**TOKENS, "tokenEndpoint": "https://login/token"}])
async def test_that_a_client_library_quotes(world, written, caplog, sasl, reason):
    """At the first connection, and while a run is open: the Event has the message without the secrets."""
    real, failing = world.real, [True]
    describe = real.describe_cluster

    def failing_when_told(settings, _owner):
        async def describe_cluster():
            if failing:
                raise FAILURES[reason](settings, quoted(settings))
            return await describe()

        real.describe_cluster = describe_cluster
        return real

    world.connect = failing_when_told
    await world.supervisor.stop()
    world.begin()
    connection(world, tls=TLS, sasl=sasl)
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == reason)
    failing.clear()
    await world.draining(kafka=REF)
    failing.append(True)
    await world.until(lambda: world.state("a") == reason)
    masked = [message for kind, message in world.kube.events if kind == reason]
    assert len(masked) >= 2
    assert all("•••" in message for message in masked)
    assert leaked(written, world, caplog) == []


@pytest.mark.parametrize(
    ("login", "reason"),
    [
        ({"sasl.jaas.config": JAAS.rstrip(";").encode(), "password": PASSWORD.encode()}, "SecretInvalid"),
        ({**LOGIN, "password": PASSWORD.encode() + b"\xff"}, "SecretInvalid"),
        ({"username": b"my-user", "sasl.jaas.config": JAAS.encode(), **STORES}, "SecretNotFound"),
    ],
    ids=["no login", "no text", "no password"],
)
async def test_that_cannot_be_read(world, written, caplog, login, reason):
    """The Event names the Secret and its key, and quotes neither this nor another key."""
    world.kube.secrets["k", "login"] = login
    connection(world, sasl=SCRAM)
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == reason)
    assert any(kind == reason and "Secret k/login" in message for kind, message in world.kube.events)
    assert leaked(written, world, caplog) == []


async def test_a_private_key_in_the_wrong_place(world, written, caplog):
    """Certificate and key in one key of the Secret."""
    world.kube.secrets["k", "pair"] = {**PAIR, "tls.crt": f"C\n{KEY}".encode()}
    connection(world, tls=TLS)
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaSettingsInvalid")
    assert leaked(written, world, caplog) == []


async def test_that_an_oauth_server_quotes(world, written, caplog):
    """Its explanation is in the Event, without the client secret that it has received. The client is the real one."""

    async def refuse(reader, writer):
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        sent = next(line for line in request.splitlines() if line.startswith("Authorization"))
        received = unquote(base64.b64decode(sent.split()[-1]).decode()).partition(":")[2]
        body = json.dumps({"error": "invalid_client", "error_description": f"{received} is wrong"})
        writer.write(f"HTTP/1.1 401 no\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        world.connect = lambda settings, _owner: connect(settings)
        await world.supervisor.stop()
        world.begin()
        connection(world, sasl={**TOKENS, "tokenEndpoint": f"http://127.0.0.1:{port}/token"})
        await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaAuthenticationFailed")
    assert any("invalid_client" in message and "•••" in message for _, message in world.kube.events)
    assert leaked(written, world, caplog) == []


async def test_that_librdkafka_cannot_use(world, written, caplog):
    """A private key that is none. The client is the real one; it connects to nothing."""
    world.connect = lambda settings, _owner: connect(settings)
    await world.supervisor.stop()
    world.begin()
    connection(world, tls=TLS, sasl=SCRAM)
    await world.until(lambda: world.state("k", "prod", CONNECTIONS) == "KafkaSettingsInvalid")
    assert leaked(written, world, caplog) == []
