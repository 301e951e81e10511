"""A Docker daemon of our own that builds images with BuildKit and leaves this machine's network alone.

Its layers stay in the cache, so that a second build takes seconds. Debian's client is used, whatever else is on PATH:
one without the buildx plugin cannot ask for BuildKit.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.bench.cache import cache_root
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

_CLIENT = "/usr/bin/docker"
_DAEMON = "/usr/sbin/dockerd"


class Docker:
    """`with` starts the daemon and stops it; images and build layers stay."""

    def __init__(self) -> None:
        self._images = cache_root() / "docker"
        # A socket's path has at most 108 bytes: not in the cache.
        self.directory = Path(tempfile.mkdtemp(prefix="node-docker-"))
        self._host = f"unix://{self.directory}/docker.sock"
        self._daemon: Child | None = None

    def __enter__(self) -> Self:
        self._images.mkdir(parents=True, exist_ok=True)
        arguments = (
            *(f"--data-root={self._images}", f"--exec-root={self.directory}/exec", f"--pidfile={self.directory}/pid"),
            *(f"--host={self._host}", "--storage-driver=overlay2"),
            # Builds use the host's network; nothing of ours belongs into its tables.
            *("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"),
        )
        self._daemon = Child([_DAEMON, *arguments], log=self.directory / "dockerd.log")
        daemon = self._daemon

        def answers() -> bool:
            daemon.check_alive()
            return self._client("version").returncode == 0

        try:
            wait_until(f"dockerd answers (log: {daemon.log})", answers)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def build(self, context: Path, tag: str, *, target: str = "", arguments: Mapping[str, str] | None = None) -> None:
        """`docker build`, its progress on our stderr. The host's CA bundle is offered as the secret `ca_bundle`."""
        command = ["build", "--progress=plain", "--network=host", "--tag", tag]
        command += ["--target", target] if target else []
        for name, value in (arguments or {}).items():
            command += ["--build-arg", f"{name}={value}"]
        bundle = os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt"
        if Path(bundle).exists():
            command += ["--secret", f"id=ca_bundle,src={bundle}"]
        with (self.directory / f"build-{target or 'image'}.log").open("w+") as log:
            done = subprocess.run([_CLIENT, *command, str(context)], env=self._env, stdout=log, stderr=log, check=False)
            if done.returncode:
                log.seek(0)
                raise RuntimeError(f"docker {' '.join(command)} failed:\n{log.read()[-8000:]}")

    def import_root(self, archive: Path, tag: str, *changes: str) -> None:
        """Make an image of one layer from a tar of a root directory."""
        self._run("import", *(word for change in changes for word in ("--change", change)), str(archive), tag)

    def has(self, tag: str) -> bool:
        """Whether there is such an image."""
        return self._client("image", "inspect", tag).returncode == 0

    def size_bytes(self, tag: str) -> int:
        """All layers, unpacked."""
        return int(self._run("image", "inspect", "--format", "{{.Size}}", tag))

    def identity(self, tag: str) -> str:
        """The image's digest."""
        return self._run("image", "inspect", "--format", "{{.Id}}", tag).strip()

    def save(self, archive: Path, *tags: str) -> None:
        """Write images as one tar, which containerd imports."""
        self._run("save", "--output", str(archive), *tags)

    @property
    def _env(self) -> dict[str, str]:
        return {**os.environ, "DOCKER_HOST": self._host, "DOCKER_BUILDKIT": "1"}

    def _run(self, *arguments: str) -> str:
        done = self._client(*arguments)
        if done.returncode:
            raise RuntimeError(f"docker {' '.join(arguments)} failed: {done.stderr}")
        return done.stdout

    def _client(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([_CLIENT, *arguments], env=self._env, capture_output=True, text=True, check=False)

    def _stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()
