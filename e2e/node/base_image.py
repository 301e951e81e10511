"""The image that ours are built on: what `E2E_BASE_IMAGE` names, else one made here from Debian's own packages.

The second is for machines that reach a Debian mirror and no registry. It has what the official slim image of the same
Python has, where the Dockerfile looks for it.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from e2e.bench.cache import cached
from e2e.node.docker import Docker

_SUITE = "bookworm"
_PACKAGES = ("python3", "python3-pip", "python3-venv", "ca-certificates")
_TAG = f"localhost/python:3.11-slim-{_SUITE}"
_USELESS = (
    *("var/lib/apt/lists", "var/cache/apt", "var/cache/debconf", "var/log"),
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"),
)


def base_image(docker: Docker) -> str:
    """Its name, once the daemon has it, or can pull it."""
    if given := os.environ.get("E2E_BASE_IMAGE"):
        return given
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    tag = f"{_TAG}-{recipe}"
    if not docker.has(tag):
        archive = cached(f"base-image/{_SUITE}-{recipe}", _make) / "root.tar"
        docker.import_root(
            archive, tag, "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "ENV LANG=C.UTF-8"
        )
    return tag


def _make(place: Path) -> None:
    print(f"Making a base image from Debian {_SUITE}'s packages: a minute, once", file=sys.stderr, flush=True)
    root, mirror = place / "root", _mirror()
    _run("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, str(root), mirror)
    # As in the official image: Python by its short names, and a pip that installs.
    for name, target in (("python", "python3"), ("python3", "python3"), ("pip", "pip3")):
        (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/{target}")
    for marker in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        marker.unlink()
    (root / "etc/apt/sources.list").write_text(f"deb {mirror} {_SUITE} main\n")
    (root / "etc/resolv.conf").write_text("")
    (root / "etc/hostname").write_text("localhost\n")
    (root / "etc/machine-id").write_text("")
    for path in _USELESS:
        shutil.rmtree(root / path, ignore_errors=True)
        (root / path).mkdir(parents=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True)
    outside = ("--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*", "--one-file-system")
    _run(
        "tar", "--create", "--numeric-owner", *outside, "--file", str(place / "root.tar"), "--directory", str(root), "."
    )
    shutil.rmtree(root)


def _mirror() -> str:
    """The Debian mirror that this machine uses."""
    known = subprocess.run(["apt-cache", "policy"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"https?://\S+/debian/?(?= )", known)
    if found is None:
        raise SystemExit("apt knows no Debian mirror: add one to its sources, the base image is made from it")
    return found.group()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
