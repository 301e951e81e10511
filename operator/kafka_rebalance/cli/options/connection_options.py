"""The options of commands that connect to Kafka: ``--bootstrap-servers`` and ``--command-config``."""

import functools
from collections.abc import Callable
from typing import BinaryIO, TypeVar

import click

from kafka_rebalance.api.connection import ADDRESSES
from kafka_rebalance.cli.files.client_properties import connection_settings, parse_properties
from kafka_rebalance.kafka.settings import ConnectionSettings

_Result = TypeVar("_Result")
_CONFIG = "--command-config"


def kafka_connection(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Adds both options; the command gets them as ``connection``, a ConnectionSettings."""
    return _with_connection(command, required=True)


def optional_kafka_connection(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Adds both options, for commands whose file names brokers, too; ``connection`` is None without either."""
    return _with_connection(command, required=False)


def _with_connection(command: Callable[..., _Result], *, required: bool) -> Callable[..., _Result]:
    default = f"bootstrap.servers of {_CONFIG}" + ("" if required else ", else those of the resource")

    @click.option(
        "--bootstrap-servers",
        "--bootstrap-server",
        "bootstrap_servers",
        metavar="HOST:PORT,…",
        help=f"Bootstrap brokers. [default: {default}]",
    )
    @click.option(
        _CONFIG,
        type=click.File("rb"),
        metavar="FILE",
        help="Properties file for the client, as for Kafka's own tools: credentials, TLS.",
    )
    @functools.wraps(command)
    def connected(
        *arguments: object, bootstrap_servers: str | None, command_config: BinaryIO | None, **options: object
    ) -> _Result:
        given = required or bootstrap_servers is not None or command_config is not None
        connection = _settings(bootstrap_servers, command_config) if given else None
        return command(*arguments, connection=connection, **options)

    return connected


def _settings(bootstrap_servers: str | None, file: BinaryIO | None) -> ConnectionSettings:
    try:
        properties = parse_properties(file.read()) if file is not None else {}
        servers = bootstrap_servers or properties.get("bootstrap.servers")
        if not servers:
            raise click.UsageError(f"give --bootstrap-servers, or bootstrap.servers in the file of {_CONFIG}")
        return connection_settings(properties, _addresses(servers, of_option=bool(bootstrap_servers)))
    except OSError as unreadable:
        raise click.BadParameter(f"cannot be read: {unreadable.strerror}", param_hint=_CONFIG) from unreadable
    except ValueError as wrong:
        raise click.BadParameter(str(wrong), param_hint=_CONFIG) from wrong


def _addresses(servers: str, *, of_option: bool) -> str:
    """The servers without the spaces around commas, which Kafka allows."""
    try:
        return ADDRESSES.check(",".join(part.strip() for part in servers.split(",")))
    except ValueError as wrong:
        where = "--bootstrap-servers" if of_option else f"bootstrap.servers in the file of {_CONFIG}"
        raise click.BadParameter(f"{wrong}, found {servers!r}", param_hint=where) from wrong
