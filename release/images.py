"""The images as files for `docker load`, `podman load` and `ctr images import`.

A build gives files the time of the build. The files of a release have the time of the commit instead, so that two
builds have the same bytes. The Dockerfile makes the contents of the files reproducible.
"""

import hashlib
import json
import os
import subprocess
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from e2e.node.base_image import base_image
from e2e.node.docker import Docker

from release.reproducible_tar import write_tar_gz
from release.versions import ROOT, version

TARGETS = ("operator", "pipeline")
_CONFIG = ("architecture", "config", "history", "os", "rootfs", "variant")
"""What an image configuration keeps: of the rest, some depends on the machine of the build."""
_KEPT_HEADERS = "SCHILY.xattr."
"""Extended attributes are content. The other extended headers are times with fractions of a second."""


def write_images(output: Path) -> None:
    """Build each image without cached layers, and write its archive into a directory. Requires root and dockerd."""
    head = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", "HEAD"], text=True).strip()
    with Docker() as docker, tempfile.TemporaryDirectory() as place:
        arguments = {"BASE_IMAGE": base_image(docker), "VERSION": version(), "REVISION": head, "CLASS_ARCHIVE": "no"}
        for target in TARGETS:
            tag = f"kafka-rebalance-{target}:{version()}"
            docker.build(ROOT, tag, target=target, arguments=arguments, cached=False)
            saved = Path(place) / f"{target}.tar"
            with saved.open("wb") as file, docker.saving(tag) as saving:
                assert saving.stdout is not None
                while block := saving.stdout.read(1 << 20):
                    file.write(block)
            if saving.returncode:
                raise RuntimeError(f"docker save {tag} failed with exit code {saving.returncode}")
            machine = docker.inspect(tag)["Architecture"]
            write_image(saved, output / f"kafka-rebalance-{target}-image-{version()}-linux-{machine}.tar.gz")
            saved.unlink()


def write_image(saved: Path, target: Path) -> None:
    """The archive of an image that `docker save` has written, with `SOURCE_DATE_EPOCH` as its latest time.

    Layers with the time of the commit have other hashes than those that were built, and so has the image.
    """
    with tempfile.TemporaryDirectory() as place, tarfile.open(saved) as archive:
        directory = Path(place)
        (image,) = json.loads(_content(archive, "manifest.json"))
        layers = [_write_layer(archive, name, directory) for name in image["Layers"]]
        config = _config(json.loads(_content(archive, image["Config"])), layers)
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        (directory / config_name).write_bytes(config)
        manifest = {
            "Config": config_name,
            "RepoTags": image["RepoTags"],
            "Layers": [f"{layer}.tar" for layer in layers],
        }
        (directory / "manifest.json").write_text(json.dumps([manifest]), encoding="utf-8")
        write_tar_gz(target, ((path.name, path) for path in directory.iterdir()))


def _config(found: dict[str, Any], layers: list[str]) -> bytes:
    """The configuration of the image with these layers, by their hashes."""
    time = _iso_time()
    config = {key: found[key] for key in _CONFIG if key in found}
    config["created"] = time
    config["history"] = [{**step, "created": time} for step in found.get("history", [])]
    config["rootfs"] = {"type": "layers", "diff_ids": [f"sha256:{layer}" for layer in layers]}
    return json.dumps(config, sort_keys=True).encode()


def _write_layer(archive: tarfile.TarFile, name: str, directory: Path) -> str:
    """Write a layer with no file newer than the commit; returns its hash, which is its name, too."""
    latest = int(os.environ["SOURCE_DATE_EPOCH"])
    part = directory / "layer"
    source = archive.extractfile(name)
    assert source is not None
    with source, tarfile.open(fileobj=source) as layer, tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as written:
        for entry in layer:
            entry.mtime = min(int(entry.mtime), latest)
            entry.pax_headers = {key: text for key, text in entry.pax_headers.items() if key.startswith(_KEPT_HEADERS)}
            written.addfile(entry, layer.extractfile(entry) if entry.isreg() else None)
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    part.rename(directory / f"{found}.tar")
    return found


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    with file:
        return file.read()


def _iso_time() -> str:
    return datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
