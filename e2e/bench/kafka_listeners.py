"""A broker with all the ways to authenticate, each over TLS, beside the plain listener of the other clusters."""

import dataclasses
import subprocess
from collections.abc import Mapping
from pathlib import Path

from e2e.bench.kafka import KafkaCluster
from e2e.bench.kafka_properties import SASL_USERS
from e2e.bench.oauth_server import AUDIENCE
from e2e.bench.pki import Authority
from e2e.bench.ports import release_port, reserve_port

_SECURITY = "org.apache.kafka.common.security"


class ListeningCluster(KafkaCluster):
    """One broker. `addresses` has its listeners: MUTUAL requires client certificates, SASL a login over TLS.

    SASL offers PLAIN, SCRAM and OAUTHBEARER, for tokens that are signed with one of the `public_keys`. `pki` issues the
    certificates; `trust` are the CAs of client certificates.
    """

    def __init__(self, public_keys: Path) -> None:
        super().__init__({1: "r1"})
        # Kafka 4 fetches keys, even from files, only from allowed addresses.
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={public_keys.as_uri()}"
        self.jars = dataclasses.replace(self.jars, jvm=(*self.jars.jvm, allowed))
        self._extra_ports = {name: reserve_port() for name in ("MUTUAL", "SASL")}
        self.pki = Authority(self.directory / "pki")
        self.pki.issue("broker", "/CN=broker", "IP:127.0.0.1")
        keystore = self.directory / "broker.pem"
        keystore.write_text(pkcs8(self.pki.key("broker")) + Path(self.pki.crt("broker")).read_text())
        self.trust = self.directory / "trust.pem"
        self.trust.write_text(self.ca)
        self._properties |= self._listeners() | self._tls(keystore) | self._logins(public_keys)

    @property
    def addresses(self) -> Mapping[str, str]:
        """host:port of the additional listeners."""
        return {name: f"{self.host}:{port}" for name, port in self._extra_ports.items()}

    @property
    def ca(self) -> str:
        """The CA of the broker's certificate, in PEM."""
        return Path(self.pki.crt("ca")).read_text()

    def close(self, *, keep_logs: bool = False) -> None:
        """Also release the ports of the additional listeners."""
        super().close(keep_logs=keep_logs)
        for port in self._extra_ports.values():
            release_port(port)
        self._extra_ports = {}

    def set_password(self, user: str, password: str) -> None:
        """Replace the SCRAM password of a user."""
        self._create_scram_users({user: password})

    def start(self) -> "ListeningCluster":
        """Also create the SCRAM users."""
        super().start()
        self._create_scram_users(SASL_USERS)
        return self

    def _listeners(self) -> dict[str, str]:
        listeners = ",".join(f"{name}://{at}" for name, at in {"CLIENT": self.address(1), **self.addresses}.items())
        return {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,MUTUAL:SSL,SASL:SASL_SSL",
        }

    def _tls(self, keystore: Path) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "listener.name.mutual.ssl.client.auth": "required",
        }

    def _logins(self, public_keys: Path) -> dict[str, str]:
        of, oauth = "listener.name.sasl", f"{_SECURITY}.oauthbearer"
        users = " ".join(f'user_{name}="{password}"' for name, password in SASL_USERS.items())
        return {
            f"{of}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
            f"{of}.plain.sasl.jaas.config": f"{_SECURITY}.plain.PlainLoginModule required {users};",
            f"{of}.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            f"{of}.oauthbearer.sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required;",
            f"{of}.oauthbearer.sasl.server.callback.handler.class": f"{oauth}.OAuthBearerValidatorCallbackHandler",
            # Sessions end soon, and at the latest with their token: a new login shows that credentials were replaced.
            f"{of}.scram-sha-512.connections.max.reauth.ms": "5000",
            f"{of}.oauthbearer.connections.max.reauth.ms": "3600000",
            "sasl.oauthbearer.jwks.endpoint.url": public_keys.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }


def pkcs8(key: str) -> str:
    """A private key as Kafka and Strimzi write it."""
    command = ["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", key]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
