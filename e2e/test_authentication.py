"""Every way to authenticate, on a real broker with TLS, with Secrets as Strimzi writes them where it writes some."""

import itertools
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from e2e.bench.kafka_listeners import ListeningCluster, pkcs8
from e2e.bench.kafka_properties import SASL_USERS
from e2e.bench.kube import KubeCluster
from e2e.bench.load import create_topics
from e2e.bench.oauth_server import OAuthServer
from e2e.bench.operator import OperatorProcess
from e2e.bench.pki import Authority
from e2e.bench.waiting import wait_until
from e2e.lane import OPERATOR_NAMESPACE, WATCHED
from e2e.rebalance import NAMESPACE, state
from e2e.world import THROTTLE_KIND, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver, pytest.mark.campaign]

CLIENT_SECRET = "s3cret of /the% client: é"
NEW_WORD = "another-word-5b1f"


@pytest.fixture(scope="module")
def oauth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OAuthServer]:
    """An OAuth server whose CA is not that of the brokers."""
    with OAuthServer(tmp_path_factory.mktemp("oauth"), {"operator": CLIENT_SECRET}) as server:
        yield server


@pytest.fixture(scope="module")
def kafka(oauth: OAuthServer) -> Iterator[ListeningCluster]:
    """One broker with TLS and all mechanisms."""
    with ListeningCluster(oauth.public_keys) as cluster:
        cluster.pki.issue("user", "/CN=operator")
        create_topics(cluster, {"guarded": [[1]]})
        yield cluster


@pytest.fixture(scope="module")
def operator(operator: OperatorProcess, kube: KubeCluster) -> Iterator[OperatorProcess]:
    """The operator of the lane, in the meantime with the most detailed log."""
    operator.stop()
    options = (*WATCHED, "--log-level", "debug", "--log-format", "json")
    detailed = OperatorProcess(kube, *options, identity="detailed", namespace=OPERATOR_NAMESPACE).start()
    yield detailed
    detailed.stop()
    operator.start()


class Access:
    """`spec.kafka` and its Secrets, for each way to authenticate."""

    def __init__(self, world: World, kafka: ListeningCluster, oauth: OAuthServer) -> None:
        self.world, self.kafka, self.oauth = world, kafka, oauth

    def of(self, way: str) -> dict[str, Any]:
        made: dict[str, Any] = getattr(self, way)()
        return made

    def mutual_tls(self) -> dict[str, Any]:
        self.user_certificate(self.kafka.pki)
        client = {"name": self.world.unique("user"), "certificateKey": "user.crt", "privateKeyKey": "user.key"}
        return self._spec("MUTUAL", tls={"clientSecretRef": client})

    def scram(self) -> dict[str, Any]:
        self.scram_user(SASL_USERS["operator"])
        return self._spec("SASL", sasl={"mechanism": "SCRAM-SHA-512", "secretRef": {"name": self.world.unique("user")}})

    def plain(self) -> dict[str, Any]:
        secret = self.world.secret("user", who="operator", word=SASL_USERS["operator"])
        keys = {"name": secret, "usernameKey": "who", "passwordKey": "word"}
        return self._spec("SASL", sasl={"mechanism": "PLAIN", "secretRef": keys})

    def oauthbearer(self) -> dict[str, Any]:
        self.oauth_client(CLIENT_SECRET)
        sasl = {
            "mechanism": "OAUTHBEARER",
            "tokenEndpoint": self.oauth.endpoint,
            "scope": "kafka",
            "secretRef": {"name": self.world.unique("user")},
            "caSecretRef": {"name": self.world.secret("oauth-ca", **{"ca.crt": self.oauth.ca})},
        }
        return self._spec("SASL", sasl=sasl)

    def user_certificate(self, issuer: Authority) -> None:
        """The Secret of a Strimzi KafkaUser with TLS."""
        certificate, key = Path(issuer.crt("user")).read_text(), pkcs8(issuer.key("user"))
        ca = Path(issuer.crt("ca")).read_text()
        self.world.secret("user", **{"ca.crt": ca, "user.crt": certificate, "user.key": key, "user.password": "x"})

    def scram_user(self, password: str) -> None:
        """The Secret of a Strimzi KafkaUser with SCRAM: the user name is only in the login of Kafka's clients."""
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = f'{module} required username="operator" password="{password}";'
        self.world.secret("user", **{"password": password, "sasl.jaas.config": login})

    def oauth_client(self, secret: str) -> None:
        self.world.secret("user", clientId="operator", clientSecret=secret)

    def _spec(self, listener: str, tls: Any = None, sasl: Any = None) -> dict[str, Any]:
        ca = self.world.secret("cluster-ca-cert", **{"ca.crt": self.kafka.ca, "ca.password": "x"})
        spec = {"bootstrapServers": self.kafka.addresses[listener], "tls": {"caSecretRef": {"name": ca}, **(tls or {})}}
        return spec | ({"sasl": sasl} if sasl else {})


@pytest.fixture
def access(world: World, kafka: ListeningCluster, oauth: OAuthServer) -> Access:
    return Access(world, kafka, oauth)


class TestMechanisms:
    """The operator and the commands are authenticated, and no output contains a secret."""

    @pytest.mark.parametrize("way", ["oauthbearer", "mutual_tls", "scram", "plain"])
    def test_accepted(self, world: World, access: Access, way: str) -> None:
        rebalance = world.rebalance(way.replace("_", "-"), "guarded", kafka=access.of(way))
        rebalance.wait_for("Succeeded")
        told = world.operator.log.read_text() + str(rebalance.get())
        assert [secret for secret in self._secrets(access) if secret in told] == []
        lines = world.operator.log.read_text().split("\n")[:-1]  # the last one may be incomplete
        logged = [json.loads(line) for line in lines]
        assert [line for line in logged if rebalance.name in line["message"]]

    @staticmethod
    def _secrets(access: Access) -> list[str]:
        """As they are, and as they are sent: in base64, or quoted in a URL."""
        plain = [SASL_USERS["operator"], CLIENT_SECRET]
        key = Path(access.kafka.pki.key("user")).read_text().splitlines()[1]
        sent = [b64encode(f"operator:{secret}".encode()).decode() for secret in plain] + [quote_plus(CLIENT_SECRET)]
        encoded = [b64encode(secret.encode()).decode() for secret in plain]
        return [*plain, *sent, *encoded, key, "PRIVATE KEY", "eyJ"]

    def test_refused(self, world: World, access: Access) -> None:
        """The status says which server did not accept the credentials."""
        kafka = access.oauthbearer()
        access.oauth_client("wrong-secret-77")
        rebalance = world.rebalance("wrong", "guarded", kafka=kafka)
        message = state(rebalance.wait_state("KafkaAuthenticationFailed"))[1]
        assert access.oauth.endpoint in message
        assert "invalid_client" in message
        assert "wrong-secret-77" not in str(rebalance.get()) + world.operator.log.read_text()

    def test_command_config(self, world: World, access: Access, tmp_path: Path) -> None:
        """The properties of Kafka's own tools, which accept the same file."""
        ca, oauth_ca, config = tmp_path / "ca.pem", tmp_path / "oauth-ca.pem", tmp_path / "client.properties"
        ca.write_text(access.kafka.ca)
        oauth_ca.write_text(access.oauth.ca)
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLogin"
        login = f'clientId="operator" clientSecret="{CLIENT_SECRET}" scope="kafka" ssl.truststore.type="PEM"'
        config.write_text(
            f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={ca}\n"
            f"sasl.mechanism=OAUTHBEARER\nsasl.login.callback.handler.class={module}CallbackHandler\n"
            f"sasl.oauthbearer.token.endpoint.url={access.oauth.endpoint}\nsasl.oauthbearer.header.urlencode=true\n"
            f'sasl.jaas.config={module}Module required {login} ssl.truststore.location="{oauth_ca}";\n'.replace(
                "é", "\\u00e9"
            )
        )
        found = world.command(
            "snapshot", "--bootstrap-servers", access.kafka.addresses["SASL"], "--command-config", str(config)
        )
        assert [row["topic"] for row in json.loads(found)["partitions"]] == ["guarded"]


class TestRotation:
    """Secrets that are replaced while the operator runs are taken up without a restart."""

    @pytest.fixture(autouse=True)
    def restored(self, kafka: ListeningCluster, oauth: OAuthServer) -> Iterator[None]:
        """The servers accept the first credentials again."""
        yield
        kafka.set_password("operator", SASL_USERS["operator"])
        oauth.clients["operator"], oauth.lifetime = CLIENT_SECRET, 3600

    def test_password(self, world: World, access: Access) -> None:
        watched = Watched(world, access.scram())
        access.kafka.set_password("operator", NEW_WORD)
        watched.wait("KafkaAuthenticationFailed")
        access.scram_user(NEW_WORD)
        watched.wait_connected_again()
        assert NEW_WORD not in world.operator.log.read_text()

    def test_client_secret(self, world: World, access: Access) -> None:
        """The tokens end with the sessions: the operator needs a new one for each."""
        access.oauth.lifetime = 8
        watched = Watched(world, access.oauthbearer())
        issued = len(access.oauth.issued)
        wait_until("the token was renewed twice", lambda: watched.ask() and len(access.oauth.issued) >= issued + 2)
        access.oauth.clients["operator"] = NEW_WORD
        watched.wait("KafkaAuthenticationFailed")
        access.oauth_client(NEW_WORD)
        watched.wait_connected_again()
        assert NEW_WORD not in world.operator.log.read_text()

    def test_certificate(self, world: World, access: Access, tmp_path: Path) -> None:
        """The brokers no longer trust the CA of the old one."""
        watched = Watched(world, access.mutual_tls())
        renewed = Authority(tmp_path / "pki")
        renewed.issue("user", "/CN=operator")
        access.kafka.trust.write_text(Path(renewed.crt("ca")).read_text())
        access.kafka.restart(1)
        watched.wait("KafkaUnreachable")
        access.user_certificate(renewed)
        watched.wait_connected_again()


class Watched:
    """A KafkaReassignmentThrottle, which keeps the operator connected; its spec is edited so that it asks at once."""

    def __init__(self, world: World, kafka: dict[str, Any]) -> None:
        self._world = world
        self._name = world.throttle("watched", kafka=kafka, leaderRate="1Mi")
        self._rates = itertools.count(2)
        self._pid = world.operator.pid
        self.wait("NothingToThrottle")

    def ask(self) -> str:
        """The reason of the condition Ready."""
        spec = json.dumps({"spec": {"leaderRate": f"{next(self._rates)}Mi"}})
        kubectl = self._world.kube.kubectl
        kubectl("patch", THROTTLE_KIND, self._name, "-n", NAMESPACE, "--type=merge", "-p", spec)
        found = json.loads(kubectl("get", THROTTLE_KIND, self._name, "-n", NAMESPACE, "-o", "json"))
        rows = found.get("status", {}).get("conditions", [])
        return next((row["reason"] for row in rows if row["type"] == "Ready"), "")

    def wait(self, reason: str) -> None:
        wait_until(f"{self._name} is {reason}", lambda: self.ask() == reason, every=1)

    def wait_connected_again(self) -> None:
        self.wait("NothingToThrottle")
        assert "connected again with the current Secrets" in self._world.operator.log.read_text()
        assert self._world.operator.pid == self._pid
