"""What `make release` writes: the same bytes each time, and files that helm, krew and pex accept."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml
from e2e.bench.helm_build import helm_binary
from release.chart_archive import write_chart
from release.checksums import SUMS, different, write_checksums
from release.command_archives import PROGRAM, platforms
from release.krew_manifest import write_manifest
from release.programs import run_python_module
from release.reproducible_tar import write_tar_gz

from release import versions


@pytest.fixture(autouse=True)
def _commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


class TestVersion:
    def test_is_the_same_everywhere(self) -> None:
        assert versions.version() == versions.project()["project"]["version"]

    def test_a_chart_of_another_version_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Otherwise the chart would install an image of another release."""
        (tmp_path / "Chart.yaml").write_text("version: 9.9.9\nappVersion: 9.9.9\n", encoding="utf-8")
        monkeypatch.setattr(versions, "CHART", tmp_path)
        with pytest.raises(ValueError, match=r"Chart.yaml has version 9.9.9, pyproject.toml has version"):
            versions.version()


class TestArchives:
    def test_time_and_owner_do_not_matter(self, tmp_path: Path) -> None:
        """Only names, contents and the right to execute do."""
        program, text = tmp_path / "program", tmp_path / "text"
        archives = []
        for number in range(2):
            program.write_text("#!/bin/sh", encoding="utf-8")
            program.chmod(0o755 if number else 0o700)
            text.write_text("text", encoding="utf-8")
            archives.append(tmp_path / f"{number}.tar.gz")
            files = [("bin/program", program), ("text", text)]
            write_tar_gz(archives[-1], files if number else reversed(files))
        one, other = (archive.read_bytes() for archive in archives)
        assert one == other
        with tarfile.open(archives[0]) as archive:
            assert [(entry.name, entry.mode, entry.mtime, entry.uid) for entry in archive] == [
                ("bin/program", 0o755, 1700000000, 0),
                ("text", 0o644, 1700000000, 0),
            ]

    def test_helm_takes_the_chart(self, tmp_path: Path) -> None:
        """It renders the same from the archive as from the directory."""
        rendered = [
            subprocess.check_output([str(helm_binary()), "template", "operator", str(chart)], text=True)
            for chart in (write_chart(tmp_path), versions.CHART)
        ]
        assert rendered[0] == rendered[1]


class TestPrograms:
    def test_a_failed_one_says_why(self, tmp_path: Path) -> None:
        """What it has written is shown, and the command."""
        (tmp_path / "broken.json").write_text("{", encoding="utf-8")
        with pytest.raises(SystemExit, match=r"Expecting property name(.|\n)*json.tool .* failed with exit code 1"):
            run_python_module("json.tool", str(tmp_path / "broken.json"))

    def test_one_that_succeeds_is_silent(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "right.json").write_text("{}", encoding="utf-8")
        run_python_module("json.tool", str(tmp_path / "right.json"))
        assert capfd.readouterr() == ("", "")


class TestChecksums:
    def test_sha256sum_reads_them(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("a", encoding="utf-8")
        write_checksums(tmp_path)
        subprocess.check_call(["sha256sum", "--quiet", "--check", SUMS], cwd=tmp_path)

    def test_a_file_that_is_added_later_is_covered(self, tmp_path: Path) -> None:
        """`.github/workflows/release.yml` adds the digests of the images."""
        (tmp_path / "a").write_text("a", encoding="utf-8")
        write_checksums(tmp_path)
        (tmp_path / "images.txt").write_text("image@sha256:0", encoding="utf-8")
        subprocess.check_call([sys.executable, "-m", "release.checksums", str(tmp_path)], cwd=versions.ROOT)
        assert [line.split()[1] for line in (tmp_path / SUMS).read_text("utf-8").splitlines()] == ["a", "images.txt"]

    def test_a_difference_is_named(self, tmp_path: Path) -> None:
        """A file with other bytes, and one that only one build has."""
        for directory, names in (("one", "abc"), ("other", "ab")):
            (tmp_path / directory).mkdir()
            for name in names:
                content = directory if name == "b" else name
                (tmp_path / directory / name).write_text(content, encoding="utf-8")
        assert different(tmp_path / "one", tmp_path / "other") == ["b", "c"]


def test_the_krew_manifest_names_each_archive(tmp_path: Path) -> None:
    archives = {}
    for platform in platforms():
        archives[platform] = tmp_path / f"{'-'.join(platform)}.tar.gz"
        archives[platform].write_text(archives[platform].name, encoding="utf-8")
    manifest = yaml.safe_load(write_manifest(archives, "1.2.3", "https://x/1.2.3", tmp_path).read_text("utf-8"))
    assert manifest["spec"]["version"] == "v1.2.3"
    found = {tuple(entry["selector"]["matchLabels"].values()): entry for entry in manifest["spec"]["platforms"]}
    assert set(found) == {("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64")}
    assert {entry["bin"] for entry in found.values()} == {PROGRAM}
    assert found["linux", "amd64"]["uri"] == "https://x/1.2.3/linux-amd64.tar.gz"
    assert len({entry["sha256"] for entry in found.values()}) == 4
