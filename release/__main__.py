"""`python -m release` writes the files of a release; with `--twice` it proves that they are reproducible."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from release.chart_archive import write_chart
from release.checksums import SUMS, different, write_checksums
from release.command_archives import write_commands
from release.images import write_images
from release.krew_manifest import write_manifest
from release.python_packages import build_packages, write_bill_of_materials
from release.versions import ROOT, version


def main() -> int:
    """Make the release; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="an empty directory, or a new one")
    parser.add_argument(
        "--url",
        default="https://example.org/kafka-rebalance-operator/{version}",
        help="where the files will be downloaded from, for the krew manifest",
    )
    parser.add_argument("--twice", action="store_true", help="make it twice, and fail if a file differs")
    parser.add_argument("--without-images", action="store_true", help="omit the images, which require root and dockerd")
    arguments = parser.parse_args()
    released, images = version(), not arguments.without_images
    os.environ["SOURCE_DATE_EPOCH"] = _time_of_the_commit()
    _make(arguments.output, released, arguments.url, images=images)
    if arguments.twice:
        with tempfile.TemporaryDirectory() as again:
            _make(Path(again), released, arguments.url, images=images)
            names = different(arguments.output, Path(again))
        if names:
            print(f"not reproducible: {', '.join(names)}", file=sys.stderr)
            return 1
        print("made twice: every file has the same bytes")
    print((arguments.output / SUMS).read_text(encoding="utf-8"), end="")
    return 0


def _make(output: Path, released: str, url: str, *, images: bool) -> None:
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        sys.exit(f"{output} is not empty")
    wheel = build_packages(output)
    write_bill_of_materials(wheel, output)
    write_chart(output)
    archives = write_commands(wheel, output)
    write_manifest(archives, released, url.format(version=released), output)
    if images:
        write_images(output)
    write_checksums(output)


def _time_of_the_commit() -> str:
    """The seconds that archives carry as the time of their files: those of the commit, not of the build."""
    return subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=ROOT, text=True).strip()


if __name__ == "__main__":
    sys.exit(main())
