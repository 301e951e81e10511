"""One connection, rendered for two client libraries; secrets appear nowhere else."""

import ssl
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka import confluent
from kafka_rebalance.kafka import settings as settings_module
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.confluent import ConfluentClient
from kafka_rebalance.kafka.failures import authentication_failed, unreachable
from kafka_rebalance.kafka.oauth_tokens import TokenSource
from kafka_rebalance.kafka.settings import (
    ConnectionSettings,
    OAuthClient,
    kafka_python_config,
    librdkafka_config,
    trusting,
)

SERVERS = "a:9092, b:9092"
PASSWORD = "hunter2-hunter2"
TOKENS = "https://login/token"
OAUTH = OAuthClient(TOKENS, "operator", PASSWORD)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A self-signed certificate and its key."""
    directory = tmp_path_factory.mktemp("pem")
    certificate, key = directory / "cert.pem", directory / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    out = ["-subj", "/CN=kafka", "-days", "2", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*request, *out], check=True, capture_output=True)
    return Path(certificate).read_text(), Path(key).read_text()


def sasl(mechanism: SaslMechanism, *, tls: bool = False) -> ConnectionSettings:
    return ConnectionSettings(SERVERS, tls=tls, sasl_mechanism=mechanism, username="operator", password=PASSWORD)


class TestRenderings:
    """Both client libraries get the same settings."""

    @pytest.mark.parametrize(
        ("settings", "protocol", "mechanism"),
        [
            (ConnectionSettings(SERVERS), "PLAINTEXT", None),
            (ConnectionSettings(SERVERS, tls=True), "SSL", None),
            (sasl(SaslMechanism.PLAIN), "SASL_PLAINTEXT", "PLAIN"),
            (sasl(SaslMechanism.SCRAM_SHA_256), "SASL_PLAINTEXT", "SCRAM-SHA-256"),
            (sasl(SaslMechanism.SCRAM_SHA_512, tls=True), "SASL_SSL", "SCRAM-SHA-512"),
        ],
    )
    def test_protocol_and_mechanism(self, settings: ConnectionSettings, protocol: str, mechanism: str | None) -> None:
        first, second = librdkafka_config(settings), kafka_python_config(settings)
        assert first["security.protocol"] == second["security_protocol"] == protocol
        assert first.get("sasl.mechanism") == second.get("sasl_mechanism") == mechanism
        assert (first["bootstrap.servers"], second["bootstrap_servers"]) == (SERVERS, ["a:9092", "b:9092"])
        if mechanism:
            assert first["sasl.password"] == second["sasl_plain_password"] == PASSWORD
            assert first["sasl.username"] == second["sasl_plain_username"] == "operator"
        assert ("ssl.ca.location" in first) == ("ssl_context" in second) == protocol.endswith("SSL")

    def test_oauthbearer(self) -> None:
        """The adapters add the callbacks that request the tokens; the client secret stays with them."""
        settings = ConnectionSettings(SERVERS, tls=True, sasl_mechanism=SaslMechanism.OAUTHBEARER, oauth=OAUTH)
        first, second = librdkafka_config(settings), kafka_python_config(settings)
        assert (first["security.protocol"], first["sasl.mechanism"]) == ("SASL_SSL", "OAUTHBEARER")
        assert (second["security_protocol"], second["sasl_mechanism"]) == ("SASL_SSL", "OAUTHBEARER")
        assert PASSWORD not in [*first.values(), *second.values()]

    def test_asking_never_creates_and_never_clings(self) -> None:
        config = librdkafka_config(ConnectionSettings(SERVERS))
        assert config["allow.auto.create.topics"] is False
        assert config["topic.metadata.refresh.interval.ms"] == 3000

    def test_receive_buffer(self) -> None:
        settings = ConnectionSettings(SERVERS, receive_buffer_bytes=65_536)
        assert librdkafka_config(settings)["socket.receive.buffer.bytes"] == 65_536
        assert kafka_python_config(settings)["receive_buffer_bytes"] == 65_536
        assert "socket.receive.buffer.bytes" not in librdkafka_config(ConnectionSettings(SERVERS))

    def test_certificates(self, pair: tuple[str, str]) -> None:
        certificate, key = pair
        settings = ConnectionSettings(SERVERS, ca_pem=certificate, client_cert_pem=certificate, client_key_pem=key)
        config = librdkafka_config(settings)
        assert (config["ssl.ca.pem"], config["ssl.certificate.pem"], config["ssl.key.pem"]) == (
            certificate,
            certificate,
            key,
        )
        context = kafka_python_config(settings)["ssl_context"]
        assert isinstance(context, ssl.SSLContext)
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
        assert len(context.get_ca_certs(binary_form=True)) == 1


class TestRefusals:
    """Invalid settings are refused before anything connects."""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"client_cert_pem": "x"},
            {"client_key_pem": "x"},
            {"sasl_mechanism": SaslMechanism.PLAIN, "username": "operator"},
            {"sasl_mechanism": SaslMechanism.PLAIN, "password": "x"},
            {"sasl_mechanism": SaslMechanism.PLAIN, "oauth": OAUTH},
            {"sasl_mechanism": SaslMechanism.OAUTHBEARER, "username": "operator", "password": "x"},
        ],
    )
    def test_halves(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(Permanent) as refused:
            ConnectionSettings(SERVERS, **wrong)
        assert refused.value.reason == "KafkaSettingsInvalid"

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ((TOKENS, "", PASSWORD), "a client id and a client secret"),
            ((TOKENS, "operator", ""), "a client id and a client secret"),
            (("file:///etc/passwd", "operator", PASSWORD), "not an https or http address"),
        ],
    )
    def test_oauth_client(self, wrong: tuple[str, ...], said: str) -> None:
        with pytest.raises(Permanent, match=said) as refused:
            OAuthClient(*wrong)
        assert refused.value.reason == "KafkaSettingsInvalid"

    def test_broken_pem(self, pair: tuple[str, str]) -> None:
        certificate, key = pair
        for settings in (
            ConnectionSettings(SERVERS, ca_pem="not a certificate"),
            ConnectionSettings(SERVERS, client_cert_pem=certificate, client_key_pem=key[:100]),
        ):
            with pytest.raises(Permanent) as refused:
                kafka_python_config(settings)
            assert refused.value.reason == "KafkaSettingsInvalid"


class TestSecrets:
    """The settings, the configs of the client libraries and errors show no secret."""

    def test_repr(self, pair: tuple[str, str]) -> None:
        certificate, key = pair
        settings = ConnectionSettings(
            SERVERS,
            client_cert_pem=certificate,
            client_key_pem=key,
            sasl_mechanism=SaslMechanism.PLAIN,
            username="operator",
            password=PASSWORD,
            oauth=OAUTH,
        )
        for shown in (settings, librdkafka_config(settings), kafka_python_config(settings)):
            for text in (repr(shown), str(shown), f"{shown}"):
                assert PASSWORD not in text
                assert "PRIVATE KEY" not in text

    def test_errors(self) -> None:
        with_token = ConnectionSettings(SERVERS, sasl_mechanism=SaslMechanism.OAUTHBEARER, oauth=OAUTH)
        for settings in (sasl(SaslMechanism.PLAIN), with_token):
            for error in (
                unreachable(settings, "list topics", f"no answer ({PASSWORD})"),
                authentication_failed(settings, f"bad {PASSWORD}"),
            ):
                assert PASSWORD not in repr(error)
                assert SERVERS in str(error)

    def test_what_librdkafka_says_of_its_configuration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It may quote the value."""

        def client(_: dict[str, Any]) -> None:
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, f"invalid {PASSWORD}"))

        monkeypatch.setattr(confluent, "AdminClient", client)
        with pytest.raises(Permanent) as refused:
            ConfluentClient(ClientAccess(sasl(SaslMechanism.PLAIN)))._build()
        assert refused.value.message == "invalid •••"

    async def test_what_a_broker_says_of_one_topic(self) -> None:
        """Brokers know the password."""
        client = ConfluentClient(ClientAccess(sasl(SaslMechanism.PLAIN)))
        said = await client._error_texts({"t": KafkaError(KafkaError.INVALID_CONFIG, f"no {PASSWORD}"), "u": None})
        assert said == {"t": "INVALID_CONFIG: no •••", "u": None}

    @pytest.mark.parametrize("secret", ["password", "client_secret"])
    def test_the_lines_are_found_once(self, monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
        """A broker may refuse thousands of topics, each with a text."""
        found, lines = [], settings_module._lines

        def counted(*secrets: str | None) -> tuple[str, ...]:
            found.append(secrets)
            return lines(*secrets)

        monkeypatch.setattr(settings_module, "_lines", counted)
        oauth = OAuthClient(TOKENS, "operator", PASSWORD) if secret == "client_secret" else None
        settings = ConnectionSettings(SERVERS, oauth=oauth, password=PASSWORD)
        for at in range(9):
            assert settings.redact(f"{at} {PASSWORD}") == f"{at} •••"
        assert len(found) == (2 if oauth else 1)

    @pytest.mark.parametrize("lines", ["•", "\0", "•\n••\n•••", "\0\n\0\0", "•\n" * 60])
    def test_the_mask_is_not_masked(self, lines: str) -> None:
        """Each line would make the text three times as long: 18 of them take all memory."""
        settings = replace(sasl(SaslMechanism.PLAIN), password=f"{lines}\n{PASSWORD}")
        assert settings.redact(f"one two {PASSWORD} three") == "one two ••• three"


class TestTurnsToDecode:
    """While OpenSSL decodes CAs, no other thread of Python runs: the event loop waited for all clients in a row."""

    @pytest.fixture
    def held(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
        """What was done, and whether the turn was held."""
        found: list[tuple[str, bool]] = []

        def noted(what: str) -> Callable[..., None]:
            return lambda *_, **__: found.append((what, settings_module._decoding.locked()))

        monkeypatch.setattr(ssl, "create_default_context", noted("context"))
        monkeypatch.setattr(confluent, "AdminClient", noted("client"))
        monkeypatch.setattr(settings_module.time, "sleep", noted("pause"))
        return found

    def test_of_a_context(self, held: list[tuple[str, bool]]) -> None:
        """The event loop goes on before the next thread has its turn."""
        trusting("ca")
        assert held == [("context", True), ("pause", True)]
        assert not settings_module._decoding.locked()

    def test_of_librdkafka(self, held: list[tuple[str, bool]]) -> None:
        ConfluentClient(ClientAccess(ConnectionSettings(SERVERS, ca_pem="ca")))._build()
        assert held == [("client", True), ("pause", True)]

    def test_none_for_who_waits_for_a_token(
        self, held: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An OAuth server that does not answer would stop the clients of other clusters."""
        settings = ConnectionSettings(SERVERS, sasl_mechanism=SaslMechanism.OAUTHBEARER, oauth=OAUTH)
        tokens = TokenSource(OAUTH)
        monkeypatch.setattr(TokenSource, "token", lambda _: None)
        ConfluentClient(ClientAccess(settings, tokens))._build()
        assert held == [("client", False)]

    def test_it_does_not_wait_for_long(self, held: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(settings_module, "_TURN_SECONDS", 0.001)
        with settings_module._decoding:
            trusting("ca")
            assert held == [("context", True), ("pause", True)]
            assert settings_module._decoding.locked()

    def test_after_what_openssl_does_not_decode(self) -> None:
        with pytest.raises(Permanent):
            trusting("ca")
        assert not settings_module._decoding.locked()
