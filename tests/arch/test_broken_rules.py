"""The list of rules to break stays true: what it changes is there, and so are the tests that catch it."""

import ast

import pytest
from tests.broken_rules.breaking import PACKAGE, ROOT, break_text
from tests.broken_rules.noticed import SEARCHES, found
from tests.broken_rules.rules import RULES
from tests.broken_rules.table import PAGE, written

LAYERS = {"planning", "execution", "api", "kafka", "kube", "reconcile", "cli", "model", "pipeline", "app", "report"}


@pytest.mark.parametrize("broken", RULES, ids=lambda broken: broken.name)
class TestEachRule:
    def test_occurs_once_where_it_is_broken(self, broken):
        """The broken file is still Python: a test that fails because of a syntax error proves nothing."""
        text = (ROOT / PACKAGE / broken.file).read_text()
        assert ast.dump(ast.parse(break_text(broken, text))) != ast.dump(ast.parse(text))

    def test_is_caught_by_tests_of_make_test(self, broken):
        """`make test` leaves out e2e/node and the campaigns."""
        assert broken.caught_by
        for test in broken.caught_by:
            path, *names = test.split("::")
            assert path.startswith(("tests/", "e2e/test_")), test
            node = ast.parse((ROOT / path).read_text())
            assert not any("campaign" in ast.unparse(mark) for mark in node.body if _is_pytestmark(mark)), test
            for name in names:
                node = next((inner for inner in node.body if getattr(inner, "name", None) == name), None)
                assert node is not None, f"{test}: there is no {name}"
                assert not any("campaign" in ast.unparse(mark) for mark in node.decorator_list), test
            assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef), f"{test} is no single test"


def _is_pytestmark(statement):
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark"


def test_every_layer_has_a_rule():
    """At least twenty rules, over all layers."""
    assert len({broken.name for broken in RULES}) == len(RULES) >= 20
    assert {broken.file.partition("/")[0] for broken in RULES} == LAYERS


def test_all_findings_are_put_back_in_simulated_worlds():
    """The critical and high findings of the first safety review, and more rules."""
    findings = [search.finding for search in SEARCHES if search.finding]
    assert sorted(findings) == [f"S{number}" for number in range(1, 9)]
    assert found().keys() <= {search.rule for search in SEARCHES} <= {broken.name for broken in RULES}


def test_simulated_worlds_notice_all_findings_and_ten_more_rules():
    """`python -m tests.broken_rules.simulated` has found a seed for each."""
    assert [search.rule for search in SEARCHES if search.rule not in found()] == []
    assert len({search.rule for search in SEARCHES if not search.finding}) >= 10


def test_the_tables_are_up_to_date():
    """`make docs-diagrams` writes it again."""
    page = PAGE.read_text()
    assert written(page) == page
