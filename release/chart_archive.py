"""The chart as `helm install` and `helm pull` take it."""

from pathlib import Path

from release.reproducible_tar import write_tar_gz
from release.versions import CHART, version


def write_chart(output: Path) -> Path:
    """The archive of the chart in a directory. `helm package` would write the time of the build into it."""
    target = output / f"{CHART.name}-chart-{version()}.tgz"
    write_tar_gz(
        target,
        ((str(path.relative_to(CHART.parent)), path) for path in CHART.rglob("*") if path.is_file()),
    )
    return target
