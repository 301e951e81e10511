"""The end of the commands that make a KafkaRebalance: check it, then print it or create it."""

import asyncio
from collections.abc import Sequence

import click

from kafka_rebalance.api.spec_warnings import rebalance_warnings
from kafka_rebalance.cli.files.manifests import ExecuteRequest, Manifest, render
from kafka_rebalance.cli.files.rebalance_file import spec_of
from kafka_rebalance.cli.options.manifest_options import BASE, ManifestOptions
from kafka_rebalance.cli.options.resource_lookup import ApiServer, connected
from kafka_rebalance.kube.submission import submit
from kafka_rebalance.reasons import Reason


def checked_manifests(wanted: ExecuteRequest, manifests: list[Manifest]) -> list[Manifest]:
    """The manifests, if the spec is valid. Warns of what is valid and probably a mistake."""
    try:
        spec = spec_of(manifests[-1]["spec"])
    except ValueError as wrong:
        if wanted.base:
            raise click.BadParameter(f"{wrong} (merged with the options)", param_hint=BASE) from wrong
        raise click.UsageError(str(wrong)) from wrong
    for reason, text in rebalance_warnings(spec):
        if wanted.throttle is None or reason is not Reason.VERY_LOW_RATE:  # said of the option
            click.echo(f"warning: {text}", err=True)
    return manifests


def print_or_create(manifests: Sequence[Manifest], options: ManifestOptions) -> None:
    """Create the manifests with --apply; print them without it."""
    if options.apply:
        asyncio.run(_create(manifests, options.server))
    else:
        click.echo(render(manifests, options.output), nl=options.output == "json")


async def _create(manifests: Sequence[Manifest], server: ApiServer) -> None:
    """Create what does not exist yet, and say what to do next."""
    *lists, rebalance = manifests
    async with connected(server=server) as kube:
        submitted = await submit(kube, rebalance, *lists)
    if submitted.no_dry_run:
        click.echo(f"no dry run was possible before: {submitted.no_dry_run}", err=True)
    name, namespace = rebalance["metadata"]["name"], rebalance["metadata"]["namespace"]
    done = "created" if submitted.created else "already exists with the same spec"
    click.echo(f"KafkaRebalance {namespace}/{name} {done}; follow it with: kafka-rebalance watch {name} -n {namespace}")
