"""Two builds of an image give the same archive if only times and the machine of the build differ."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from release.images import write_image

COMMIT = 1700000000
OLD = 1500000000
"""The time of a file of a Debian package: such times are kept."""


@pytest.fixture(autouse=True)
def _commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(COMMIT))


def entry(name: str, *, mtime: float, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.mtime = kind, mtime  # type: ignore[assignment] # fractions are written as extended headers
    for key, value in fields.items():
        setattr(found, key, value)
    return found


def layer(built: float) -> bytes:
    """A layer that was built at this time."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(entry("opt", mtime=built, kind=tarfile.DIRTYPE, mode=0o755))
        capability = {"SCHILY.xattr.security.capability": "raw", "ctime": str(built)}
        archive.addfile(
            entry("opt/a", mtime=built, size=3, mode=0o755, uid=7, pax_headers=capability), io.BytesIO(b"one")
        )
        archive.addfile(entry("opt/hard", mtime=built, kind=tarfile.LNKTYPE, linkname="opt/a"))
        archive.addfile(entry("opt/soft", mtime=OLD, kind=tarfile.SYMTYPE, linkname="a"))
    return content.getvalue()


def save(target: Path, built: float, daemon: str) -> Path:
    """What `docker save` writes."""
    history = [{"created": f"at {built}", "created_by": "COPY"}]
    config = {
        "architecture": "amd64",
        "config": {"User": "65532:65532"},
        "container": daemon,
        "created": f"at {built}",
        "docker_version": daemon,
        "history": history,
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": ["sha256:0"]},
    }
    manifest = [{"Config": "c.json", "RepoTags": ["kafka-rebalance-operator:1.2.3"], "Layers": ["x/layer.tar"]}]
    files = {"c.json": json.dumps(config).encode(), "x/layer.tar": layer(built)}
    files["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(target, "w") as archive:
        for name, content in files.items():
            archive.addfile(entry(name, mtime=built, size=len(content)), io.BytesIO(content))
    return target


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_image(save(tmp_path / "saved", COMMIT + 5.5, "one"), tmp_path / "one.tar.gz")
    return tmp_path / "one.tar.gz"


def contents(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        return {one.name: file.read() for one in opened if (file := opened.extractfile(one)) is not None}


def test_the_time_and_the_machine_do_not_matter(tmp_path: Path, written: Path) -> None:
    write_image(save(tmp_path / "again", COMMIT + 9000.25, "other"), tmp_path / "two.tar.gz")
    assert written.read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_hashes_and_times_are_those_of_the_new_layers(written: Path) -> None:
    """`docker load` compares the hash of each layer with the configuration."""
    found = contents(written)
    (image,) = json.loads(found["manifest.json"])
    assert image["RepoTags"] == ["kafka-rebalance-operator:1.2.3"]
    config = json.loads(found[image["Config"]])
    assert hashlib.sha256(found[image["Config"]]).hexdigest() == image["Config"].removesuffix(".json")
    hashes = [hashlib.sha256(found[name]).hexdigest() for name in image["Layers"]]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{one}" for one in hashes]
    assert (config["created"], config["config"]) == ("2023-11-14T22:13:20Z", {"User": "65532:65532"})
    assert config["history"] == [{"created": "2023-11-14T22:13:20Z", "created_by": "COPY"}]


def test_files_keep_all_but_times_after_the_commit(written: Path) -> None:
    """Owner, mode, links and extended attributes."""
    found = contents(written)
    (image,) = json.loads(found["manifest.json"])
    with tarfile.open(fileobj=io.BytesIO(found[image["Layers"][0]])) as opened:
        entries = {one.name: one for one in opened}
        assert {name: one.mtime for name, one in entries.items()} == {
            "opt": COMMIT,
            "opt/a": COMMIT,
            "opt/hard": COMMIT,
            "opt/soft": OLD,
        }
        program = entries["opt/a"]
        assert (program.mode, program.uid, opened.extractfile(program).read()) == (0o755, 7, b"one")  # type: ignore[union-attr]
        assert program.pax_headers == {"SCHILY.xattr.security.capability": "raw"}
        assert (entries["opt/hard"].linkname, entries["opt/soft"].linkname) == ("opt/a", "a")
