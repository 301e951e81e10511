"""`python -m e2e.node.images` builds the project's images as its users would, and prints their sizes."""

import subprocess
import time
from pathlib import Path

from e2e.node.base_image import base_image
from e2e.node.docker import Docker

_ROOT = Path(__file__).parents[2]
TARGETS = ("operator", "pipeline")


def image(target: str) -> str:
    """The name under which an image is built here. No registry has it: nothing can be pulled by mistake."""
    return f"localhost/kafka-rebalance-{target}:e2e"


def build_images(docker: Docker) -> None:
    """Build all, and say how long it took and how big they are."""
    base = base_image(docker)
    print(f"base {base}: {_megabytes(docker, base)}" if docker.has(base) else f"base {base}", flush=True)
    revision = subprocess.run(
        ["git", "-C", str(_ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    for target in TARGETS:
        begun = time.monotonic()
        arguments = {"BASE_IMAGE": base, "REVISION": revision or "unknown"}
        docker.build(_ROOT, image(target), target=target, arguments=arguments)
        took = time.monotonic() - begun
        print(f"{target} {image(target)}: {_megabytes(docker, image(target))}, {took:.0f} s", flush=True)


def _megabytes(docker: Docker, tag: str) -> str:
    return f"{docker.size_bytes(tag) / 1e6:.0f} MB"


if __name__ == "__main__":
    with Docker() as daemon:
        build_images(daemon)
