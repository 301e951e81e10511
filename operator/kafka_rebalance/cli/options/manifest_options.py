"""The options of the commands that make a KafkaRebalance: its base, name and throttle, and whether to create it."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

import click

from kafka_rebalance.api.validation import validate
from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.cli.files.manifests import ExecuteRequest
from kafka_rebalance.cli.files.rebalance_file import FileMetadata, read_rebalance
from kafka_rebalance.cli.options.rate_option import checked, checked_rate
from kafka_rebalance.cli.options.resource_lookup import ApiServer, api_server_options

BASE = "--rebalance"

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ManifestOptions:
    """``base``: the file of --rebalance, not read yet; None without the option."""

    server: ApiServer
    base: BinaryIO | None
    throttle: str | None
    name: str | None
    namespace: str | None
    apply: bool
    output: str

    def read_base(self) -> Mapping[str, Any]:
        """The KafkaRebalance of --rebalance; empty without the option."""
        return parsed(BASE, self.base, read_rebalance) if self.base is not None else {}

    def request(self, base: Mapping[str, Any], bootstrap_servers: str) -> ExecuteRequest:
        """The request with this base."""
        return ExecuteRequest(
            self.namespace,
            self.name,
            bootstrap_servers,
            base,
            self.throttle,
            default_namespace=self.server.namespace,
        )


def manifest_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """The command gets these options as ``wanted``, a ManifestOptions."""

    @click.option(
        BASE,
        "rebalance",
        type=click.File("rb"),
        help="KafkaRebalance file whose spec, labels and annotations are the base.",
    )
    @click.option(
        "--throttle",
        callback=checked_rate("--throttle"),
        help="Throttle rate per broker in bytes per second, for example 50Mi.",
    )
    @click.option(
        "--name",
        callback=checked(lambda name: validate(FileMetadata, {"name": name}, ""), "name"),
        help="Name of the KafkaRebalance. [default: derived from its content]",
    )
    @click.option(
        "-n",
        "--namespace",
        callback=checked(lambda name: validate(FileMetadata, {"namespace": name}, ""), "namespace"),
        help="Namespace of the KafkaRebalance. [default: that of --rebalance, else of the context]",
    )
    @api_server_options
    @click.option("--apply", is_flag=True, help="Create the KafkaRebalance instead of printing it.")
    @click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
    @functools.wraps(command)
    def made(
        *arguments: object,
        server: ApiServer,
        rebalance: BinaryIO | None,
        throttle: str | None,
        name: str | None,
        namespace: str | None,
        apply: bool,
        output: str,
        **options: object,
    ) -> _Result:
        wanted = ManifestOptions(server, rebalance, throttle, name, namespace, apply, output)
        return command(*arguments, wanted=wanted, **options)

    return made
