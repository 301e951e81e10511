"""The version of a release. It is written in pyproject.toml; the chart repeats it, and a test compares them."""

import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "kafka-rebalance-operator"


def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def version() -> str:
    """The version of the release. ValueError if the chart has another one."""
    found = str(project()["project"]["version"])
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    for key in ("version", "appVersion"):
        if chart[key] != found:
            raise ValueError(f"Chart.yaml has {key} {chart[key]}, pyproject.toml has version {found}")
    return found
