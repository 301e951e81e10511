"""Takes the pictures of the docs (`make docs-pictures`): a report in a browser, and a run on real brokers."""

import shutil
import tempfile
from pathlib import Path

from tests.fakes.whole_program import run_program

from e2e.bench.browser import Browser
from e2e.bench.child_settings import set_defaults
from e2e.cast.animation import animated
from e2e.cast.session import session

_ROOT = Path(__file__).parents[1]
PICTURES = _ROOT / "docs" / "pictures"
_HEIGHT = 725
"""The figures, and the replicas of each broker before and after."""
_TITLE = "brokers 4 and 5 are new: plan, run, roll back"


def main() -> None:
    """All pictures."""
    set_defaults()
    PICTURES.mkdir(exist_ok=True)
    _reports()
    (PICTURES / "run.svg").write_text(animated(session(), title=_TITLE), encoding="utf-8")


def _reports() -> None:
    """The top of the report of the example, light and dark."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        page = place / "report.html"
        done = run_program("report", "--cluster", str(_ROOT / "examples" / "cluster.json"), "-o", str(page))
        if done.code:
            raise SystemExit(done.err)
        for name, dark in (("light", False), ("dark", True)):
            browser = Browser(place / name, dark=dark, height=_HEIGHT)
            (place / name).mkdir()
            shutil.copyfile(browser.picture(page, "report.png"), PICTURES / f"report-{name}.png")


if __name__ == "__main__":
    main()
