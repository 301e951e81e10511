"""Wheel, source distribution and bill of materials."""

import tempfile
from pathlib import Path

from release.programs import run_python_module
from release.versions import ROOT, version


def build_packages(output: Path) -> Path:
    """Build the wheel and the source distribution into a directory. Returns the wheel.

    The build backend is the one of this environment, so that two builds have the same.
    """
    run_python_module("build", "--no-isolation", "--outdir", str(output), str(ROOT))
    (wheel,) = output.glob("*.whl")
    return wheel


def write_bill_of_materials(wheel: Path, output: Path) -> Path:
    """A CycloneDX document of the wheel with the versions of all dependencies that pip installs with it today."""
    target = output / f"kafka-rebalance-operator-{version()}.cdx.json"
    with tempfile.TemporaryDirectory() as place:
        run_python_module("venv", "--without-pip", place)
        python = Path(place) / "bin" / "python"
        run_python_module(
            *("pip", "--python", str(python), "--quiet", "--disable-pip-version-check"),
            *("install", f"kafka-rebalance-operator[pipeline] @ {wheel.resolve().as_uri()}"),
        )
        run_python_module(
            *("cyclonedx_py", "environment", str(python)),
            *("--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application"),
            *("--output-reproducible", "--output-format", "JSON", "--output-file", str(target)),
        )
    return target
