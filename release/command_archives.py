"""The command line as one executable file for each platform. It needs only one of the Pythons in `PYTHONS`.

It has the dependencies of the group `cli` (`pip install --group cli`), which all commands need that use only the API
server.
"""

import json
import tempfile
import zipfile
from pathlib import Path

from packaging import tags

from release.programs import run_python_module
from release.reproducible_tar import write_tar_gz
from release.versions import ROOT, project, version

PROGRAM = "kubectl-kafka_rebalance"
PYTHONS = ("3.11", "3.12", "3.13")
_GLIBC = 28  # Debian 10, Ubuntu 20.04, RHEL 8 and later
_MACOS = (14, 0)  # the oldest for which every library has a wheel for every Python


def platforms() -> dict[tuple[str, str], list[str]]:
    """(operating system, architecture), as krew names them, and the platform tags of wheels that work there."""
    linux = {
        ("linux", krew): [
            *(f"manylinux_2_{minor}_{machine}" for minor in range(_GLIBC, 16, -1)),
            f"manylinux2014_{machine}",
        ]
        for krew, machine in (("amd64", "x86_64"), ("arm64", "aarch64"))
    }
    macos = {
        ("darwin", krew): list(tags.mac_platforms(_MACOS, machine))
        for krew, machine in (("amd64", "x86_64"), ("arm64", "arm64"))
    }
    return linux | macos


def write_commands(wheel: Path, output: Path) -> dict[tuple[str, str], Path]:
    """An archive for each platform, with the program, which is also a kubectl plugin, and the licence."""
    with tempfile.TemporaryDirectory() as place:
        sources = Path(place) / "sources"
        with zipfile.ZipFile(wheel) as archive:  # pip would record where the wheel was
            archive.extractall(sources)
        requirements = Path(place) / "requirements.txt"
        requirements.write_text("\n".join(project()["dependency-groups"]["cli"]), encoding="utf-8")
        return {
            platform: _archive(platform, wheel_tags, sources, requirements, output)
            for platform, wheel_tags in platforms().items()
        }


def _archive(platform: tuple[str, str], wheel_tags: list[str], sources: Path, requirements: Path, output: Path) -> Path:
    target = output / f"kafka-rebalance-cli-{version()}-{'-'.join(platform)}.tar.gz"
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / PROGRAM
        interpreters = [_interpreter(platform, python, wheel_tags, Path(place)) for python in PYTHONS]
        run_python_module(
            *("pex", "--no-build", "--sh-boot", "--requirement", str(requirements)),
            *("--sources-directory", str(sources), "--entry-point", "kafka_rebalance.cli.main:main"),
            *(option for file in interpreters for option in ("--complete-platform", str(file))),
            *("--output-file", str(program)),
        )
        write_tar_gz(target, [(PROGRAM, program), ("LICENSE", ROOT / "LICENSE")])
    return target


def _interpreter(platform: tuple[str, str], python: str, wheel_tags: list[str], place: Path) -> Path:
    """A file that describes an interpreter to pex: the wheels that it takes, and the markers of requirements."""
    system, machine = platform
    major, minor = (int(part) for part in python.split("."))
    wheels = [
        *tags.cpython_tags((major, minor), platforms=wheel_tags),
        *tags.compatible_tags((major, minor), interpreter=f"cp{major}{minor}", platforms=wheel_tags),
    ]
    described = {
        "path": python,
        "compatible_tags": [str(tag) for tag in wheels],
        "marker_environment": {
            "implementation_name": "cpython",
            "implementation_version": f"{python}.0",
            "os_name": "posix",
            "platform_machine": {"amd64": "x86_64", "arm64": "aarch64" if system == "linux" else "arm64"}[machine],
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": {"linux": "Linux", "darwin": "Darwin"}[system],
            "platform_version": "",
            "python_full_version": f"{python}.0",
            "python_version": python,
            "sys_platform": system,
        },
    }
    file = place / f"cp{major}{minor}.json"
    file.write_text(json.dumps(described), encoding="utf-8")
    return file
