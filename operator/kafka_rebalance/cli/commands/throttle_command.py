"""kafka-rebalance throttle: sets the throttle of a KafkaRebalance; running transfers follow within seconds."""

import asyncio

import click

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.cli.options.rate_option import checked_rate
from kafka_rebalance.cli.options.resource_lookup import ResourceScope, connected, namespace_options
from kafka_rebalance.kube.merge_patch import merge_patch
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.spec_changes import change

_FIELDS = ("leaderRate", "followerRate", "unlimited", "logDirRate")


@click.command("throttle")
@click.argument("name")
@namespace_options
@click.option("--rate", callback=checked_rate("--rate"), help="What a broker may send and fetch, per second: 50Mi.")
@click.option("--leader-rate", callback=checked_rate("--leader-rate"), help="What a broker may send, per second.")
@click.option("--follower-rate", callback=checked_rate("--follower-rate"), help="What a broker may fetch, per second.")
@click.option(
    "--log-dir-rate",
    callback=checked_rate("--log-dir-rate"),
    help="What a broker may copy between its log dirs, per second.",
)
@click.option("--unlimited", is_flag=True, help="No throttle.")
@click.option(
    "--cluster-default", is_flag=True, help="The rates of the cluster's KafkaReassignmentThrottle, or the default."
)
def throttle(
    name: str,
    scope: ResourceScope,
    *,
    rate: str | None,
    leader_rate: str | None,
    follower_rate: str | None,
    log_dir_rate: str | None,
    unlimited: bool,
    cluster_default: bool,
) -> None:
    """Set the throttle of KafkaRebalance NAME, also while it runs.

    Rates are in bytes per second per broker. A rate that is not given stays as it is; rates replace --unlimited.
    """
    given = {"leaderRate": leader_rate, "followerRate": follower_rate, "logDirRate": log_dir_rate}
    if rate is not None:
        if leader_rate is not None or follower_rate is not None:
            raise click.UsageError("give either --rate, or --leader-rate and --follower-rate")
        given |= {"leaderRate": rate, "followerRate": rate}
    rates = {field: value for field, value in given.items() if value is not None}
    if bool(rates) + unlimited + cluster_default != 1:
        raise click.UsageError("give rates, --unlimited or --cluster-default, and only one of them")
    wanted: Json | None
    if cluster_default:
        wanted = None
    elif unlimited:
        wanted = dict.fromkeys(_FIELDS) | {"unlimited": True}
    else:
        wanted = {"unlimited": None, **rates}
    asyncio.run(_set(scope, name, wanted))


async def _set(scope: ResourceScope, name: str, wanted: Json | None) -> None:
    def decide(body: Json) -> Json | None:
        now = body["spec"].get("throttle")
        same = now is None if wanted is None else now == merge_patch(now, wanted)
        return None if same else {"spec": {"throttle": wanted}}

    async with connected(server=scope.server) as kube:
        changed = await change(kube, REBALANCES, scope.namespace, name, decide)
    set_to = "that of the cluster applies" if wanted is None else _in_words(wanted)
    click.echo(
        f"the throttle of KafkaRebalance {scope.namespace}/{name} is {'' if changed else 'already '}set: {set_to}"
    )


def _in_words(wanted: Json) -> str:
    if wanted.get("unlimited"):
        return "unlimited"
    parts = (
        ("leaderRate", "leaders send at most {} bytes per second"),
        ("followerRate", "followers fetch at most {} bytes per second"),
        ("logDirRate", "each broker copies at most {} bytes per second between its log dirs"),
    )
    return ", ".join(text.format(wanted[field]) for field, text in parts if field in wanted)
