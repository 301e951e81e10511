"""Layout rules that no linter checks."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from kafka_rebalance.reasons import Reason

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "operator"
PACKAGE = SOURCES / "kafka_rebalance"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "base"}
MAX_LINES = 400


def named(path):
    return str(path.relative_to(ROOT))


class TestSourceRoot:
    def test_operator_is_no_package(self):
        """``operator/`` holds the package and never an ``__init__.py``."""
        assert not (SOURCES / "__init__.py").exists(), (
            "operator/__init__.py must not exist: operator/ is a source root like src/. With this file, Python "
            "in the repository's root imports our directory for `import operator` instead of the standard "
            "library's module, and functools, collections and nearly everything else breaks. Delete it."
        )

    def test_the_package_is_where_it_is_looked_for(self):
        """An empty list would make every other test here pass."""
        assert PACKAGE / "errors.py" in MODULES


@pytest.mark.parametrize("path", MODULES, ids=named)
class TestModules:
    def test_is_named_for_what_it_is_about(self, path):
        """Modules are split by subject: a module with a generic name collects everything."""
        names = {part.lower().strip("_") for part in (*path.relative_to(PACKAGE).parts[:-1], path.stem)}
        assert not names & NAMELESS, f"{named(path)}: say what it is about"

    def test_fits_a_readers_head(self, path):
        """Under 400 lines; from about 300 lines on, look for a second subject."""
        lines = len(path.read_text().splitlines())
        assert lines < MAX_LINES, f"{named(path)} has {lines} lines: split it by subject"

    def test_says_at_its_top_why_it_exists(self, path):
        """Every module and package opens with a docstring."""
        assert ast.get_docstring(ast.parse(path.read_text())), f"{named(path)} has no docstring"


@pytest.mark.parametrize(
    "directory", sorted({path.parent for path in MODULES}), ids=lambda path: str(path.relative_to(SOURCES))
)
class TestPackages:
    def test_has_an_init_with_a_docstring(self, directory):
        """A directory of modules is a package with a docstring that says what it is for."""
        init = directory / "__init__.py"
        assert init.exists(), f"{named(directory)} has no __init__.py: it would be left out of the distribution"
        assert ast.get_docstring(ast.parse(init.read_text())), f"{named(init)} has no docstring"


class TestNames:
    def test_modules_are_named_once(self):
        """A module can be found by its name alone: names are unique."""
        names = Counter(path.stem for path in MODULES if path.stem != "__init__")
        assert [name for name, count in names.items() if count > 1] == []

    def test_classes_are_named_once(self):
        """A class name has one meaning in the whole project, so that imports need no alias."""
        names = Counter(
            node.name for path in MODULES for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
        )
        assert [name for name, count in names.items() if count > 1] == []


UNIT = ROOT / "tests" / "unit"
UNIT_TESTS = sorted(UNIT.rglob("test_*.py"))


@pytest.mark.parametrize("path", UNIT_TESTS, ids=named)
def test_a_unit_test_lies_where_its_module_does(path):
    """The tests of ``a/b/c.py`` are in ``tests/unit/a/b/test_c.py``, or ``test_c_<aspect>.py`` for one aspect."""
    package = PACKAGE / path.parent.relative_to(UNIT)
    subject = path.stem.removeprefix("test_")
    modules = {module.stem for module in package.glob("*.py")}
    assert any(subject == module or subject.startswith(f"{module}_") for module in modules), (
        f"{named(path)}: {named(package)} has no module that this could be the test of"
    )


_LONG = 60
"""Lines from which a module has rules of its own."""


_ELSEWHERE = dict(
    re.findall(
        r"^\| `((?:execution|planning|reconcile)/[^`]*)` \| (`tests/.*) \|$",
        (ROOT / "docs" / "testing.md").read_text().split("## Rules broken on purpose")[0],
        re.MULTILINE,
    )
)
_SUBJECTS = tuple(path.stem.removeprefix("test_") for path in UNIT_TESTS)


class TestWhereAModuleIsTested:
    """A reader who changes a rule finds its tests: by the name of the module, or in the table of docs/testing.md."""

    def has_tests(self, path):
        return any(subject == path.stem or subject.startswith(f"{path.stem}_") for subject in _SUBJECTS)

    @pytest.mark.parametrize("room", ["execution", "planning", "reconcile"])
    def test_by_its_name_or_in_the_table(self, room):
        missing = []
        for path in sorted((PACKAGE / room).rglob("*.py")):
            place = path.relative_to(PACKAGE).as_posix()
            if path.stem == "__init__" or len(path.read_text().splitlines()) < _LONG or self.has_tests(path):
                continue
            if not any(place == row or (row.endswith("/") and place.startswith(row)) for row in _ELSEWHERE):
                missing.append(place)
        assert missing == []

    @pytest.mark.parametrize("row", _ELSEWHERE)
    def test_rows_are_true(self, row):
        """The module exists and has no tests of its name; the tests exist."""
        assert (PACKAGE / row).exists()
        assert row.endswith("/") or not self.has_tests(PACKAGE / row)
        for name in re.findall("`([^`]+)`", _ELSEWHERE[row]):
            assert (ROOT / name).is_file(), name


ERRORS = {"Permanent", "Refused", "Transient"}
SAID = {"StepBlock", "PartitionStatus", "Closed", "SkippedPartition", "Wait", "Skip"}


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_reasons_are_constants(path):
    """Users match on reasons: each is a member of ``Reason`` with its sentence, never a literal at its place of use."""
    literals = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS | SAID
        for argument in (*node.args[:2], *(k.value for k in node.keywords if k.arg == "reason"))
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and argument.value.isalnum()
    ]
    assert literals == []


def test_every_reason_has_its_sentence():
    """The sentence continues "Reports that"."""
    for reason in Reason:
        assert len(reason.sentence.split()) > 3, reason
        assert not reason.sentence.endswith("."), reason
