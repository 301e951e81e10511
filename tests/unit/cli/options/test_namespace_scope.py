"""The options for the namespaces that an operator watches."""

import click
import pytest
from click.testing import CliRunner

from kafka_rebalance.cli.commands.operator_command import operator
from kafka_rebalance.cli.options.namespace_scope import in_words, watched_namespaces


@click.command()
@watched_namespaces
def show(namespaces):
    click.echo(repr(namespaces))


class TestWatchedNamespaces:
    @pytest.mark.parametrize(
        ("arguments", "namespaces"),
        [
            (["--all-namespaces"], ()),
            (["--namespace", "a"], ("a",)),
            (["--namespace", "b", "--namespace", "a", "--namespace", "b"], ("b", "a")),
        ],
    )
    def test_all_or_those_that_are_named(self, arguments, namespaces):
        assert CliRunner().invoke(show, arguments).stdout.strip() == repr(namespaces)

    @pytest.mark.parametrize("arguments", [[], ["--namespace", "a", "--all-namespaces"]])
    def test_one_or_the_other(self, arguments):
        """Without either option nothing would be watched; both together would be contradictory."""
        refused = CliRunner().invoke(show, arguments)
        assert (refused.exit_code, "either --namespace or --all-namespaces" in refused.output) == (2, True)

    @pytest.mark.parametrize("name", ["team-*", "a/b", "", "A", "a,b", "x" * 64])
    def test_what_is_no_name_is_refused(self, name):
        """kopf would use the first as a pattern and, without the permission to list namespaces, watch nothing."""
        refused = CliRunner().invoke(operator, ["--namespace", name])
        assert (refused.exit_code, f"{name!r} is not a valid namespace name" in refused.output) == (2, True)

    def test_in_words(self):
        assert [in_words(names) for names in [(), ("a",), ("a", "b")]] == [
            "all namespaces",
            "namespace a",
            "namespaces a, b",
        ]
