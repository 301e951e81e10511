"""Breaks one rule in a copy of the repository, and runs there the tests that have to fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.broken_rules.broken_rule import BrokenRule

ROOT = Path(__file__).parents[2]
PACKAGE = Path("operator/kafka_rebalance")
_PASSED, _FAILED, _WRONG_CODE = 0, 1, 99
_LIMIT_SECONDS = 1200
# The editable install has the package too: the copy's must be the one that is tested.
_PYTEST = f"""
import sys
import pytest
import kafka_rebalance
if not kafka_rebalance.__file__.startswith(sys.argv[1]):
    sys.exit({_WRONG_CODE})
sys.exit(pytest.main(sys.argv[2:]))
"""
_SUMMARY = re.compile(r"^(FAILED|ERROR) ([^\s\[]+).*?(?: - (.*))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """``failures``: each test that failed, with its message. ``trouble``: why the rule is not caught, or empty."""

    failures: tuple[str, ...]
    trouble: str
    seconds: float


def break_rule(broken: BrokenRule) -> Outcome:
    """Break the rule in a copy, and run the tests that have to fail."""
    started = time.monotonic()
    with copy_of_the_tree() as copy:
        file = copy / PACKAGE / broken.file
        file.write_text(break_text(broken, file.read_text()))
        code, output = _run(copy, broken.caught_by)
    found = _SUMMARY.findall(output)
    failed = {test: message for kind, test, message in found if kind == "FAILED"}
    if code == _FAILED and failed and all(kind == "FAILED" for kind, *_ in found):
        silent = [test for test in broken.caught_by if not any(name.startswith(test) for name in failed)]
        trouble = f"did not fail: {', '.join(silent)}" if silent else ""
    else:
        trouble = f"pytest ended with {code}: {output[-2000:]}"
    return Outcome(tuple(f"{test}: {why}" for test, why in failed.items()), trouble, time.monotonic() - started)


def break_text(broken: BrokenRule, text: str) -> str:
    """The text with the rule broken. ValueError unless the rule is there once."""
    if text.count(broken.find) != 1:
        raise ValueError(f"{broken.name}: {broken.find!r} occurs {text.count(broken.find)} times in {broken.file}")
    return text.replace(broken.find, broken.replacement)


def unbroken(rules: Iterable[BrokenRule]) -> str:
    """The tests of these rules that fail although nothing is broken; empty where all pass."""
    with copy_of_the_tree() as copy:
        code, output = _run(copy, list(dict.fromkeys(test for broken in rules for test in broken.caught_by)))
    return "" if code == _PASSED else output[-2000:]


@contextmanager
def copy_of_the_tree() -> Iterator[Path]:
    """A directory with the files of the working tree that git does not ignore, until the end of the with."""
    with tempfile.TemporaryDirectory(prefix="broken-rule-") as made:
        copy = Path(made).resolve()
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
        yield copy


def _run(copy: Path, tests: Iterable[str]) -> tuple[int, str]:
    """The exit code of pytest and what it printed."""
    options = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [sys.executable, "-c", _PYTEST, f"{copy / PACKAGE}", *options, *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": f"{copy / PACKAGE.parent}", "COLUMNS": "300"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    return ran.returncode, ran.stdout
