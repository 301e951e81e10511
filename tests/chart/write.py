"""`python -m tests.chart.write` updates the generated files: CRDs, dashboard, README, snapshots."""

from tests.chart.dashboard import FILE, rendered_dashboard
from tests.chart.rendering import CASES, CHART, ROOT, snapshot, snapshot_of
from tests.chart.values_table import with_table


def main() -> None:
    """Write all of them; the tests compare them."""
    for copy in (CHART / "files" / "crds").glob("*.yaml"):
        copy.unlink()
    for original in (ROOT / "crds").glob("*.yaml"):
        (CHART / "files" / "crds" / original.name).write_bytes(original.read_bytes())
    FILE.write_text(rendered_dashboard(), encoding="utf-8")
    readme = CHART / "README.md"
    readme.write_text(with_table(readme.read_text(encoding="utf-8"), CHART / "values.yaml"), encoding="utf-8")
    for case in CASES:
        snapshot_of(case).write_text(snapshot(case), encoding="utf-8")


if __name__ == "__main__":
    main()
