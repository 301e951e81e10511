"""Takes the pictures of the docs from a report, with a browser: `make docs-pictures`."""

import shutil
import tempfile
from pathlib import Path

from tests.fakes.whole_program import run_program

from e2e.bench.browser import Browser

_ROOT = Path(__file__).parents[1]
PICTURES = _ROOT / "docs" / "pictures"
_HEIGHT = 725
"""The figures, and the replicas of each broker before and after."""


def main() -> None:
    """The top of the report of the example, light and dark."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        page = place / "report.html"
        done = run_program("report", "--cluster", str(_ROOT / "examples" / "cluster.json"), "-o", str(page))
        if done.code:
            raise SystemExit(done.err)
        PICTURES.mkdir(exist_ok=True)
        for name, dark in (("light", False), ("dark", True)):
            browser = Browser(place / name, dark=dark, height=_HEIGHT)
            (place / name).mkdir()
            shutil.copyfile(browser.picture(page, "report.png"), PICTURES / f"report-{name}.png")


if __name__ == "__main__":
    main()
