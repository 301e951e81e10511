"""kafka-rebalance lint: checks manifest files before they reach a cluster. Connects to nothing."""

import sys
from typing import BinaryIO

import click

from kafka_rebalance.cli.exit_codes import EXIT_NO
from kafka_rebalance.cli.files.manifest_lint import LintedResource, lint
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.phrases import counted
from kafka_rebalance.printable_text import printable


@click.command("lint")
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
@click.option("--strict", is_flag=True, help="Exit with 4 also if there are only warnings, or nothing to check.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def lint_files(files: tuple[BinaryIO, ...], *, strict: bool, output: str) -> None:
    """Check KafkaRebalances, KafkaReassignmentThrottles and KafkaConnections in FILES. Exits with 4 if any is invalid.

    Checks what the API server and the operator would refuse, and warns of settings that are probably mistakes.
    Resources of other kinds are ignored.
    """
    found = [(getattr(file, "name", "<stdin>"), resource) for file in files for resource in _resources(file)]
    errors = sum(len(resource.errors) for _, resource in found)
    warnings = sum(len(resource.warnings) for _, resource in found)
    if output == "table":
        for name, resource in found:
            for kind, texts in (("error", resource.errors), ("warning", resource.warnings)):
                for text in texts:
                    click.echo(printable(f"{name}: {resource.what}: {kind}: {text}", kept="\n"))
        click.echo(f"{counted(len(found), 'resource')}, {counted(errors, 'error')}, {counted(warnings, 'warning')}")
    else:
        print_document({"resources": [_row(name, resource) for name, resource in found]}, output)
    if not found:
        click.echo("warning: the files contain no resource of kafkarebalance.dev, so nothing was checked", err=True)
    if errors or (strict and (warnings or not found)):
        sys.exit(EXIT_NO)


def _resources(file: BinaryIO) -> list[LintedResource]:
    try:
        return lint(file.read())
    except ValueError as broken:
        return [LintedResource("the file", (str(broken),))]


def _row(name: str, resource: LintedResource) -> dict[str, object]:
    return {
        "file": name,
        "resource": resource.what,
        "errors": list(resource.errors),
        "warnings": list(resource.warnings),
    }
