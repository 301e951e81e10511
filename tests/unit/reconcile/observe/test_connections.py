"""The Secrets and keys of the credentials, and the messages if they are missing."""

import ssl
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes import der
from tests.fakes.kube_in_memory import KubeInMemory

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.errors import Permanent, RebalanceError, Refused
from kafka_rebalance.kafka.settings import ConnectionSettings, OAuthClient
from kafka_rebalance.kube.objects import UserSecret
from kafka_rebalance.reconcile.observe import pem_blocks, secret_text
from kafka_rebalance.reconcile.observe.connections import resolve
from kafka_rebalance.reconcile.state.namespace_turns import AllInlineTurns
from kafka_rebalance.reconcile.state.round_thread import round_of


def pem(common: str) -> bytes:
    return der.certificate(common).encode()


def key(content: bytes) -> bytes:
    return der.pem(der.private_key(der.EC, der.oid(der.P256), content), "PRIVATE KEY").encode()


JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="my-user" password="word";'
STRIMZI_SCRAM = {"password": b"word", "sasl.jaas.config": JAAS.encode()}
STRIMZI_TLS = {
    "ca.crt": pem("CA"),
    "user.crt": pem("C"),
    "user.key": key(b"K"),
    "user.p12": b"\xff",
    "user.password": b"p",
}


async def resolved(spec: dict[str, Any], **secrets: dict[str, bytes]) -> ConnectionSettings:
    kube = KubeInMemory()
    kube.secrets = {("kafka", name): data for name, data in secrets.items()}
    kafka = Kafka.model_validate({"bootstrapServers": "a:1", **spec})
    return (await resolve(kafka, "kafka", kube)).settings  # type: ignore[arg-type]


def scram(**sasl: Any) -> dict[str, Any]:
    return {"sasl": {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "user"}, **sasl}}


class TestTls:
    """CA and client certificate."""

    async def test_kubernetes_keys_are_the_default(self) -> None:
        spec = {"tls": {"caSecretRef": {"name": "ca"}, "clientSecretRef": {"name": "user"}}}
        found = await resolved(
            spec, ca={"ca.crt": b"# comment\n" + pem("CA")}, user={"tls.crt": pem("C"), "tls.key": key(b"K")}
        )
        assert (found.tls, found.ca_pem, found.client_cert_pem, found.client_key_pem) == (
            True,
            pem("CA").decode(),
            pem("C").decode(),
            key(b"K").decode(),
        )

    async def test_the_secrets_of_strimzi(self) -> None:
        client = {"name": "user", "certificateKey": "user.crt", "privateKeyKey": "user.key"}
        found = await resolved(
            {"tls": {"caSecretRef": {"name": "ca"}, "clientSecretRef": client}},
            ca={"ca.crt": pem("CLUSTER"), "ca.p12": b"\xff", "ca.password": b"p"},
            user=STRIMZI_TLS,
        )
        expected = pem("CLUSTER").decode(), pem("C").decode(), key(b"K").decode()
        assert (found.ca_pem, found.client_cert_pem, found.client_key_pem) == expected

    async def test_certificate_and_key_are_of_one_reading(self) -> None:
        """A rotation between two readings would pair a certificate with the key of another one."""
        kube, pairs = KubeInMemory(), iter([(pem("1"), key(b"1")), (pem("2"), key(b"2"))])

        async def read_secret(_namespace: str, _name: str) -> UserSecret:
            return UserSecret("u", dict(zip(("tls.crt", "tls.key"), next(pairs), strict=True)))

        kube.read_secret = read_secret
        kafka = Kafka.model_validate({"bootstrapServers": "a:1", "tls": {"clientSecretRef": {"name": "user"}}})
        found = (await resolve(kafka, "kafka", kube)).settings  # type: ignore[arg-type]
        assert (found.client_cert_pem, found.client_key_pem) == (pem("1").decode(), key(b"1").decode())

    @pytest.mark.parametrize(
        ("certificate", "private", "said"),
        [
            (der.certificate("a", parameters=der.explicit_curve()), key(b"K").decode(), "'tls.crt' of .* named curve"),
            ("C", key(b"K").decode(), "'tls.crt' of Secret kafka/user has no PEM certificate"),
            (der.certificate("a"), "K", "'tls.key' of Secret kafka/user has no PEM private key"),
            (
                der.certificate("a"),
                der.pem(der.private_key(der.EC, der.explicit_curve(), b"K"), "PRIVATE KEY"),
                "'tls.key' of .* named curve",
            ),
            (
                der.certificate("a"),
                der.pem(der.private_key(der.DSA, der.number(1), b"K"), "PRIVATE KEY"),
                "'tls.key' of .* neither RSA, nor EC",
            ),
        ],
    )
    async def test_no_pair_that_openssl_computes_long(self, certificate: str, private: str, said: str) -> None:
        """Their author chooses what OpenSSL computes to decode them; librdkafka does so with Python's lock."""
        secret = {"tls.crt": certificate.encode(), "tls.key": private.encode()}
        with pytest.raises(RebalanceError, match=said) as refused:
            await resolved({"tls": {"clientSecretRef": {"name": "user"}}}, user=secret)
        assert refused.value.reason == "SecretInvalid"

    @pytest.mark.parametrize(
        ("certificate", "key", "named", "instead"),
        [
            ("C\n-----BEGIN ENCRYPTED PRIVATE KEY-----", "K", "'tls.crt'", "write only certificates there"),
            ("C\n-----BEGIN RSA PRIVATE KEY-----", "K", "'tls.crt'", "write only certificates there"),
            ("C", "-----BEGIN ENCRYPTED PRIVATE KEY-----", "'tls.key'", "openssl pkey -in KEY -out PLAIN"),
            ("C", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED", "'tls.key'", "without a passphrase"),
            ("C", "K\n-----BEGIN ENCRYPTED PRIVATE KEY-----", "'tls.key'", "without a passphrase"),
        ],
    )
    async def test_no_key_that_opens_slowly(self, certificate: str, key: str, named: str, instead: str) -> None:
        """OpenSSL tries the first key that it finds, and an encrypted one says itself how long that takes."""
        secret = {"tls.crt": certificate.encode(), "tls.key": key.encode()}
        with pytest.raises(Permanent) as refused:
            await resolved({"tls": {"clientSecretRef": {"name": "user"}}}, user=secret)
        assert refused.value.reason == "KafkaSettingsInvalid"
        assert f"key {named} of Secret kafka/user" in refused.value.message
        assert instead in refused.value.message


class TestLogin:
    """User name and password."""

    @pytest.mark.parametrize(
        ("sasl", "secret", "login"),
        [
            ({}, {"username": b"u", "password": b"p"}, ("u", "p")),
            ({}, {"username": b"u", **STRIMZI_SCRAM}, ("u", "word")),
            ({}, STRIMZI_SCRAM, ("my-user", "word")),
            ({"username": "other"}, STRIMZI_SCRAM, ("other", "word")),
            ({"username": "other"}, {"password": b"p"}, ("other", "p")),
            (
                {"secretRef": {"name": "user", "usernameKey": "who", "passwordKey": "word"}},
                {"who": b"u", "word": b"p", "username": b"no", "password": b"no"},
                ("u", "p"),
            ),
        ],
    )
    async def test_where_it_is_read(
        self, sasl: dict[str, Any], secret: dict[str, bytes], login: tuple[str, str]
    ) -> None:
        found = await resolved(scram(**sasl), user=secret)
        assert (found.username, found.password) == login

    @pytest.mark.parametrize(
        ("sasl", "secret", "reason", "said"),
        [
            ({}, {"password": b"p"}, "SecretNotFound", "or set sasl.username"),
            ({}, {"username": b"u"}, "SecretNotFound", "Secret kafka/user has no key 'password'"),
            (
                {},
                {"username": b"u", "password": b"a\nhunter2"},
                "SecretInvalid",
                "key 'password' of Secret kafka/user has",
            ),
            (
                {},
                {"username": b"u", "password": b"\xff"},
                "SecretInvalid",
                "key 'password' of Secret kafka/user is not",
            ),
            (
                {"secretRef": {"name": "user", "usernameKey": "who"}},
                {"username": b"u", **STRIMZI_SCRAM},
                "SecretNotFound",
                "no key 'who'",
            ),
            (
                {},
                {"password": b"p", "sasl.jaas.config": b"hunter2"},
                "SecretInvalid",
                "'sasl.jaas.config' of Secret kafka/user: ",
            ),
            ({}, {"password": b"p", "sasl.jaas.config": b"M required a=1;"}, "SecretInvalid", "has no username"),
        ],
    )
    async def test_what_is_missing(
        self, sasl: dict[str, Any], secret: dict[str, bytes], reason: str, said: str
    ) -> None:
        with pytest.raises(RebalanceError) as failed:
            await resolved(scram(**sasl), user=secret)
        assert failed.value.reason == reason
        assert said in failed.value.message
        assert "hunter2" not in failed.value.message


class TestOAuthClient:
    """Client id and secret, and the CA of the OAuth server."""

    @pytest.mark.parametrize("keys", [("clientId", "clientSecret"), ("id", "secret")])
    async def test_keys(self, keys: tuple[str, str]) -> None:
        named = {} if keys[0] == "clientId" else {"clientIdKey": keys[0], "clientSecretKey": keys[1]}
        spec = {
            "mechanism": "OAUTHBEARER",
            "tokenEndpoint": "https://login/token",
            "scope": "kafka",
            "secretRef": {"name": "user", **named},
        }
        found = await resolved({"tls": {}, "sasl": spec}, user={keys[0]: b"i", keys[1]: b"s", "username": b"no"})
        assert found.oauth == OAuthClient("https://login/token", "i", "s", "kafka")
        assert (found.username, found.password) == (None, None)

    async def test_its_ca(self) -> None:
        """The CA certificates of the OAuth server, not of the brokers."""
        spec = {
            "mechanism": "OAUTHBEARER",
            "tokenEndpoint": "https://login/token",
            "secretRef": {"name": "user"},
            "caSecretRef": {"name": "ca", "key": "oauth.crt"},
        }
        user = {"clientId": b"i", "clientSecret": b"s"}
        with pytest.raises(RebalanceError, match=r"Secret kafka/ca has no key 'oauth\.crt'"):
            await resolved({"tls": {}, "sasl": spec}, user=user, ca={"ca.crt": pem("brokers")})
        with pytest.raises(RebalanceError, match=r"key 'oauth\.crt' of Secret kafka/ca has no PEM certificate"):
            await resolved({"tls": {}, "sasl": spec}, user=user, ca={"oauth.crt": b"CA"})
        hostile = der.certificate("CA", parameters=der.explicit_curve()).encode()
        with pytest.raises(RebalanceError, match=r"key 'oauth\.crt' of Secret kafka/ca has .* with a named curve"):
            await resolved({"tls": {}, "sasl": spec}, user=user, ca={"oauth.crt": hostile})

    async def test_a_secret_of_several_lines(self) -> None:
        spec = {"mechanism": "OAUTHBEARER", "tokenEndpoint": "https://login/token", "secretRef": {"name": "user"}}
        with pytest.raises(Refused, match="key 'clientSecret' of Secret kafka/user has several lines"):
            await resolved({"tls": {}, "sasl": spec}, user={"clientId": b"i", "clientSecret": b"s\nt"})

    @pytest.mark.parametrize("missing", ["clientId", "clientSecret"])
    async def test_what_is_missing(self, missing: str) -> None:
        spec = {"mechanism": "OAUTHBEARER", "tokenEndpoint": "https://login/token", "secretRef": {"name": "user"}}
        secret = {"clientId": b"i", "clientSecret": b"s"}
        del secret[missing]
        with pytest.raises(RebalanceError, match=f"Secret kafka/user has no key '{missing}'"):
            await resolved({"tls": {}, "sasl": spec}, user=secret)


class TestManyCAs:
    """Each distinct inline connection of a namespace checks its CAs when it is created, and each minute after that."""

    @pytest.fixture
    def threads(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The threads in which certificates were checked."""
        found: list[str] = []

        def certificates(text: str) -> list[str]:
            found.append(threading.current_thread().name)
            return pem_blocks.certificates(text)

        monkeypatch.setattr(secret_text, "pem_blocks", SimpleNamespace(certificates=certificates))
        return found

    async def test_are_checked_in_the_thread_of_inline_connections(self, threads: list[str]) -> None:
        spec = {"tls": {"caSecretRef": {"name": "ca"}}, "sasl": TOKENS}
        many = {"ca.crt": pem("CA") * 100}
        user = {"clientId": b"i", "clientSecret": b"s"}
        with round_of(AllInlineTurns().of("kafka").round):
            found = await resolved(spec, user=user, ca=many, **{"token-ca": many})
        assert found.oauth
        assert found.ca_pem == found.oauth.ca_pem == many["ca.crt"].decode()
        assert [name.rpartition("_")[0] for name in threads] == ["inline-round"] * 2

    async def test_of_a_kafka_connection(self, threads: list[str]) -> None:
        await resolved({"tls": {"caSecretRef": {"name": "ca"}}}, ca={"ca.crt": pem("CA") * 100})
        assert threads != [threading.current_thread().name]

    async def test_few_are_checked_without_waiting(self, threads: list[str]) -> None:
        await resolved({"tls": {"caSecretRef": {"name": "ca"}}}, ca={"ca.crt": pem("CA") * 10})
        assert threads == [threading.current_thread().name]

    async def test_what_is_refused_in_the_thread(self) -> None:
        with pytest.raises(Refused, match=r"key 'ca\.crt' of Secret kafka/ca has 251 certificates"):
            await resolved({"tls": {"caSecretRef": {"name": "ca"}}}, ca={"ca.crt": pem("CA") * 251})

    async def test_openssl_decodes_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No other thread of Python runs meanwhile. Clients decode them, each in its thread or process."""
        monkeypatch.delattr(ssl, "create_default_context")
        secrets = {"user": {"clientId": b"i", "clientSecret": b"s"}, "token-ca": {"ca.crt": pem("CA")}}
        found = await resolved({"tls": {}, "sasl": TOKENS}, **secrets)
        assert found.oauth == OAuthClient("https://login/token", "i", "s", ca_pem=pem("CA").decode())


BOTH = {"caSecretRef": {"name": "ca"}, "clientSecretRef": {"name": "pair"}}
PLAIN = {"mechanism": "PLAIN", "secretRef": {"name": "user"}, "allowPlaintextCredentials": True}
TOKENS = {
    "mechanism": "OAUTHBEARER",
    "tokenEndpoint": "https://login/token",
    "secretRef": {"name": "user"},
    "caSecretRef": {"name": "token-ca"},
}


class TestOnlyTheSecretsOnRecord:
    """Of a connection that no resource names any more: a Secret with another uid may belong to others."""

    def kube(self) -> KubeInMemory:
        kube = KubeInMemory()
        user = {"username": b"u", "password": b"hunter2", "clientId": b"i", "clientSecret": b"hunter2"}
        cas, pair = {"ca.crt": pem("CA")}, {"tls.crt": pem("C"), "tls.key": key(b"K")}
        secrets = {"user": user, "ca": cas, "token-ca": cas, "pair": pair}
        kube.secrets = {("kafka", name): data for name, data in secrets.items()}
        return kube

    @pytest.mark.parametrize(
        ("sasl", "names"), [(PLAIN, {"user", "ca", "pair"}), (TOKENS, {"user", "ca", "pair", "token-ca"})]
    )
    async def test_each_of_them(self, sasl: dict[str, Any], names: set[str]) -> None:
        """Those that were used are returned with their uids. Each may be the one that was created again."""
        kube = self.kube()
        kafka = Kafka.model_validate({"bootstrapServers": "a:1", "tls": BOTH, "sasl": sasl})
        first = await resolve(kafka, "kafka", kube)  # type: ignore[arg-type]
        assert first.secrets == {name: f"uid-of-{name}" for name in names}
        assert await resolve(kafka, "kafka", kube, first.secrets) == first  # type: ignore[arg-type]
        for name in names:
            kube.secret_uids = {("kafka", name): "another"}
            with pytest.raises(Refused, match=f"Secret kafka/{name} was created again since") as refused:
                await resolve(kafka, "kafka", kube, first.secrets)  # type: ignore[arg-type]
            assert (refused.value.reason, "hunter2" in refused.value.message) == ("SecretNotFound", False)

    async def test_none_on_record(self) -> None:
        """A record of an earlier version has no uids."""
        kafka = Kafka.model_validate({"bootstrapServers": "a:1", "sasl": PLAIN})
        with pytest.raises(Refused, match="Secret kafka/user has no uid on record"):
            await resolve(kafka, "kafka", self.kube(), {})  # type: ignore[arg-type]

    async def test_a_connection_without_secrets(self) -> None:
        """There is nothing to check."""
        kafka = Kafka.model_validate({"bootstrapServers": "a:1", "tls": {}})
        assert (await resolve(kafka, "kafka", KubeInMemory(), {})).secrets == {}  # type: ignore[arg-type]
