"""Docker with BuildKit: our own daemon, which does not change this machine's network, or the existing one.

Ours keeps its layers in the cache, so that a second build takes seconds. It uses Debian's client even if PATH has
another one, because a client without the buildx plugin cannot use BuildKit.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.bench.cache import cache_root
from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

_CLIENT = "/usr/bin/docker"
_DAEMON = "/usr/sbin/dockerd"


class Docker:
    """`with` starts the daemon and stops it; images and build layers are kept. Not `own`: uses the machine's daemon."""

    def __init__(self, *, own: bool = True) -> None:
        self._own = own
        self._images = cache_root() / "docker"
        # A socket path is limited to 108 bytes, so it is not in the cache.
        self.directory = Path(tempfile.mkdtemp(prefix="node-docker-"))
        self._program = _CLIENT if own else "docker"
        socket = {"DOCKER_HOST": f"unix://{self.directory}/docker.sock"} if own else {}
        self._env = {**os.environ, **socket, "DOCKER_BUILDKIT": "1"}
        self._daemon: Child | None = None

    def __enter__(self) -> Self:
        if self._own:
            try:
                self._start()
            except BaseException:
                self._stop()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()
        if error is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self) -> None:
        self._images.mkdir(parents=True, exist_ok=True)
        arguments = (
            *(f"--data-root={self._images}", f"--exec-root={self.directory}/exec", f"--pidfile={self.directory}/pid"),
            *(f"--host={self._env['DOCKER_HOST']}", "--storage-driver=overlay2"),
            # Builds use the host's network; our daemon must not change its tables.
            *("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"),
        )
        daemon = self._daemon = Child([_DAEMON, *arguments], log=self.directory / "dockerd.log")

        def answers() -> bool:
            daemon.check_alive()
            return self._client("version").returncode == 0

        wait_until(f"dockerd answers (log: {daemon.log})", answers)

    def _stop(self) -> None:
        if self._daemon is not None:
            self._daemon.stop()

    def build(
        self,
        context: Path,
        tag: str,
        *,
        target: str = "",
        arguments: Mapping[str, str] | None = None,
        cached: bool = True,
    ) -> None:
        """`docker build`, from the layers of earlier builds if ``cached``.

        The host's CA bundle is passed as the secret `ca_bundle`. A failure shows the end of the output.
        """
        command = ["build", "--progress=plain", "--network=host", "--tag", tag]
        command += [] if cached else ["--no-cache"]
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
        """Create an image with one layer from a tar of a root directory."""
        self._run("import", *(word for change in changes for word in ("--change", change)), str(archive), tag)

    def load(self, archive: Path) -> None:
        """`docker load`: add the images of an archive."""
        self._run("load", "--input", str(archive))

    def has(self, tag: str) -> bool:
        """Whether the image exists."""
        return self._client("image", "inspect", tag).returncode == 0

    def size_bytes(self, tag: str) -> int:
        """Total size of all layers, unpacked."""
        return int(self.inspect(tag)["Size"])

    def saving(self, *tags: str) -> subprocess.Popen[bytes]:
        """A process that writes the images to its stdout as one tar, for containerd to import."""
        return subprocess.Popen([self._program, "save", *tags], env=self._env, stdout=subprocess.PIPE)

    def tag(self, tag: str, other: str) -> None:
        """Add another name to an image."""
        self._run("tag", tag, other)

    def inspect(self, tag: str) -> Any:
        """The output of `docker image inspect`."""
        (found,) = json.loads(self._run("image", "inspect", tag))
        return found

    def run(
        self,
        tag: str,
        *arguments: str,
        stdin: str = "",
        entrypoint: str = "",
        network: str = "none",
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a container as a strict cluster would: read-only except /tmp, no capabilities, by default no network.

        Libraries in /tmp can be loaded, as in an emptyDir: Spark's decompressor is one.
        """
        strict: tuple[str, ...] = (
            "--read-only",
            "--tmpfs=/tmp:exec",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            f"--network={network}",
        )
        strict += (f"--entrypoint={entrypoint}",) if entrypoint else ()
        strict += tuple(f"--env={name}={value}" for name, value in (variables or {}).items())
        return self._client("run", "--rm", "--interactive", *strict, tag, *arguments, stdin=stdin)

    def _run(self, *arguments: str) -> str:
        done = self._client(*arguments)
        if done.returncode:
            raise RuntimeError(f"docker {' '.join(arguments)} failed: {done.stderr}")
        return done.stdout

    def _client(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [self._program, *arguments]
        return subprocess.run(command, env=self._env, input=stdin, capture_output=True, text=True, check=False)
