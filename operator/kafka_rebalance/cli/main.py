"""kafka-rebalance: the entry point. Each command is imported only when it is called: the clients import slowly.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused (the reason on stderr, nothing on stdout).
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys

import click

from kafka_rebalance.errors import RebalanceError, Refused

EXIT_FAILED = 1
EXIT_REFUSED = 3

# Errors of writing to a full or broken disk. Any other system error without a file name is a defect: show its stack.
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

_COMMANDS = {
    # command: (module, attribute, one line for --help)
    "check-install": (
        "kafka_rebalance.cli.commands.check_install_command",
        "check_install",
        "Verify the installation of the operator.",
    ),
    "doctor": (
        "kafka_rebalance.cli.commands.doctor_command",
        "doctor",
        "Find problems that a Kafka cluster does not recover from.",
    ),
    "execute": (
        "kafka_rebalance.cli.commands.execute_command",
        "execute",
        "Execute a reassignment file or a decommission as a KafkaRebalance.",
    ),
    "explain": (
        "kafka_rebalance.cli.commands.explain_command",
        "explain",
        "Explain why a plan moves what it moves.",
    ),
    "operator": ("kafka_rebalance.cli.commands.operator_command", "operator", "Run the operator in the foreground."),
    "pipeline": (
        "kafka_rebalance.cli.commands.pipeline_command",
        "pipeline",
        "Sample a cluster, and compute load models with Spark.",
    ),
    "plan": (
        "kafka_rebalance.cli.commands.plan_command",
        "plan",
        "Plan offline from a cluster file.",
    ),
    "retire": ("kafka_rebalance.cli.commands.retire_command", "retire", "Prepare the removal of the operator."),
    "snapshot": (
        "kafka_rebalance.cli.commands.snapshot_command",
        "snapshot",
        "Write a live cluster to a file for plan.",
    ),
    "status": (
        "kafka_rebalance.cli.commands.status_command",
        "status",
        "Show the progress of a KafkaRebalance.",
    ),
    "steps": ("kafka_rebalance.cli.commands.steps_command", "steps", "List the steps from one assignment to another."),
    "undo": (
        "kafka_rebalance.cli.commands.undo_command",
        "undo",
        "Undo a KafkaRebalance that has succeeded.",
    ),
    "verify": (
        "kafka_rebalance.cli.commands.verify_command",
        "verify",
        "Verify that a reassignment file has been executed.",
    ),
    "watch": (
        "kafka_rebalance.cli.commands.watch_command",
        "watch",
        "Follow a KafkaRebalance until it ends.",
    ),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101 - the table above is ours
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, row[2]) for name, row in sorted(_COMMANDS.items())])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-rebalance-operator")
def cli() -> None:
    """Rebalance Kafka clusters with the fewest replica moves, in small steps, throttled and with rollback."""


def main() -> None:
    """Entry point: turns our own errors into exit codes and one line on stderr."""
    if os.getpid() == 1:
        # Process 1 of a container ignores signals without a handler, and would be killed after the grace period.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        sys.exit(130)
    except Refused as refused:
        click.echo(f"refused ({refused.reason}): {refused.message}", err=True)
        sys.exit(EXIT_REFUSED)
    except RebalanceError as failed:
        click.echo(f"failed ({failed.reason}): {failed.message}", err=True)
        sys.exit(EXIT_FAILED)
    except OSError as error:
        if error.errno in _UNWRITABLE:
            _drop_output()
            click.echo(f"failed (OutputFailed): {error.strerror}", err=True)
        elif error.filename is not None:
            click.echo(f"failed (FileFailed): {error.strerror}: {error.filename}", err=True)
        else:
            raise
        sys.exit(EXIT_FAILED)


def _drop_output() -> None:
    """Redirect stdout to /dev/null: at exit Python would fail to flush its buffer and print a traceback."""
    if sys.stdout is None:  # closed by the shell: >&-
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
