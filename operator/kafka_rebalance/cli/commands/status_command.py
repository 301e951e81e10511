"""kafka-rebalance status: shows a KafkaRebalance; with --batch, all of its partitions in flight.

The status of a resource is bounded and lists at most 20 partitions in flight. The whole batch is computed from the
stored plan and the reassignments that Kafka lists. Rates after the end of a run are computed here, too: a finished
resource is to cost the operator nothing. Only reads.
"""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.cli.options.gone_rebalances import find_or_gone
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, directory_option, reading, record_options
from kafka_rebalance.cli.tables.console import print_document
from kafka_rebalance.cli.tables.status_table import print_summary
from kafka_rebalance.kube.objects import Json

if TYPE_CHECKING:
    from kafka_rebalance.model.load import LoadModel


@click.command("status")
@click.argument("name")
@directory_option
@record_options
@click.option("--batch", is_flag=True, help="Show all partitions in flight, from the stored plan and from Kafka.")
@click.option(
    "--load-model",
    metavar="FILE",
    help="Show the measured rates of the brokers next to the predicted ones. The load model, a file or s3:// URI, has "
    "to be of the time after the run.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def status(name: str, scope: ResourceScope, *, batch: bool, load_model: str | None, output: str) -> None:
    """Show the progress of KafkaRebalance NAME, and what it waits for.

    JSON and YAML are the status of the resource; with --batch, they have the format of KIP-435's response.
    """
    if batch and load_model is not None:
        raise click.UsageError("--load-model is about the end of a run, --batch about reassignments in flight: use one")
    if batch:
        from kafka_rebalance.cli.commands.asked_of_kafka import read_batch
        from kafka_rebalance.cli.tables.batch_table import print_batch
        from kafka_rebalance.cli.tables.current_batch import response

        found, on_disk = asyncio.run(read_batch(scope, name, sizes=output == "table"))
        print_document(response(found), output) if output != "table" else print_batch(found, on_disk)
        return
    model = None
    if load_model is not None:
        from kafka_rebalance.cli.files.load_model_file import read_load_model

        model = read_load_model(load_model)
    body = asyncio.run(_read(scope, name, model))
    if output == "table":
        print_summary(parse_rebalance(body), datetime.now(UTC))
    else:
        print_document(body.get("status") or {}, output)


async def _read(scope: ResourceScope, name: str, model: "LoadModel | None") -> Json:
    """The resource; with the model, its status has the measured rates."""
    async with reading(scope) as kube:
        body = await find_or_gone(kube, scope.namespace, name)
        if model is not None:
            from kafka_rebalance.cli.commands.asked_of_kafka import measured

            peaks = await measured(kube, parse_rebalance(body), model)
            for row in body["status"]["plan"]["load"]["resources"]:
                if row["resource"] in peaks:
                    row["peakMeasured"] = peaks[row["resource"]]
        return body
