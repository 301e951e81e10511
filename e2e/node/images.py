"""`python -m e2e.node.images` builds the project's images as users do, and prints their sizes."""

import subprocess
import sys
import time
import tomllib
from pathlib import Path

from e2e.node.base_image import base_image
from e2e.node.docker import Docker

_ROOT = Path(__file__).parents[2]
_VERSION = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
# The chart's default image names, so that the commands of the docs install it unchanged.
OPERATOR = f"kafka-rebalance-operator:{_VERSION}"
PIPELINE = f"kafka-rebalance-pipeline:{_VERSION}"
NEXT_TAG = "next"
NEXT_OPERATOR = f"kafka-rebalance-operator:{NEXT_TAG}"
"""The image of an upgrade: the same program under another name."""


IMAGES = (OPERATOR, NEXT_OPERATOR, PIPELINE)


def build_images(docker: Docker) -> None:
    """Build all images, and print duration and sizes to stderr."""
    base = base_image(docker)
    head = subprocess.run(["git", "-C", str(_ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    arguments = {"BASE_IMAGE": base, "VERSION": _VERSION, "REVISION": head.stdout.strip() or "unknown"}
    for target, tag in (("operator", OPERATOR), ("pipeline", PIPELINE)):
        begun = time.monotonic()
        docker.build(_ROOT, tag, target=target, arguments=arguments)
        took = time.monotonic() - begun
        print(f"{tag}: {docker.size_bytes(tag) / 1e6:.0f} MB, {took:.0f} s", file=sys.stderr, flush=True)
    docker.tag(OPERATOR, NEXT_OPERATOR)


if __name__ == "__main__":
    with Docker() as daemon:
        build_images(daemon)
