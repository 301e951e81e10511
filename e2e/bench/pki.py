"""A certificate authority for one temporary control plane, and kubeconfigs made from it; based on `openssl`."""

import json
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

_DAYS = "2"


class Authority:
    """Keys and certificates in one directory: `ca`, those from `issue`, and the key that signs tokens."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True)
        self.directory = directory
        self._key("ca")
        _openssl(
            "req", "-x509", "-new", "-key", self.key("ca"), "-days", _DAYS, "-subj", "/CN=bench", "-out", self.crt("ca")
        )
        self._key("tokens")
        _openssl("ec", "-in", self.key("tokens"), "-pubout", "-out", str(directory / "tokens.pub"))

    def key(self, name: str) -> str:
        """The path of a private key."""
        return str(self.directory / f"{name}.key")

    def crt(self, name: str) -> str:
        """The path of a certificate."""
        return str(self.directory / f"{name}.crt")

    def issue(self, name: str, subject: str, alternatives: str = "") -> None:
        """Create a key and a certificate for `subject`, for servers and clients."""
        self._key(name)
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        extensions.write_text(
            "keyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n"
            + (f"subjectAltName={alternatives}\n" if alternatives else "")
        )
        _openssl("req", "-new", "-key", self.key(name), "-subj", subject, "-out", str(request))
        _openssl(
            *("x509", "-req", "-in", str(request), "-days", _DAYS, "-extfile", str(extensions)),
            *("-CA", self.crt("ca"), "-CAkey", self.key("ca"), "-CAcreateserial", "-out", self.crt(name)),
        )

    def kubeconfig(self, name: str, server: str) -> Path:
        """A kubeconfig for the certificate `name`."""
        user = {"client-certificate-data": _base64(self.crt(name)), "client-key-data": _base64(self.key(name))}
        path = self.directory / f"{name}.kubeconfig"
        write_kubeconfig(path, {"server": server, "certificate-authority-data": _base64(self.crt("ca"))}, user)
        return path

    def _key(self, name: str) -> None:
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.key(name))


def write_kubeconfig(path: Path, cluster: Mapping[str, object], user: Mapping[str, object]) -> None:
    """Write a kubeconfig with one cluster and one user; JSON is valid YAML."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": user}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr}")


def _base64(path: str) -> str:
    return b64encode(Path(path).read_bytes()).decode()
