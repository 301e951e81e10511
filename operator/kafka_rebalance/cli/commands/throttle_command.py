"""kafka-rebalance throttle: sets rates, or an override of them; running transfers follow within seconds.

Of a KafkaRebalance, or with ``--cluster-wide`` of a KafkaReassignmentThrottle, which limits all rebalances of its
cluster.
"""

import asyncio
from dataclasses import dataclass

import click

from kafka_rebalance.api.overrides import THROTTLE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import KINDS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.cli.options.override_options import (
    OverrideOrder,
    overridden_to,
    override_options,
    without_override,
)
from kafka_rebalance.cli.options.rate_option import checked_rate
from kafka_rebalance.cli.options.resource_lookup import (
    ResourceScope,
    changing,
    directory_option,
    namespace_options,
    warn_if_ended,
)
from kafka_rebalance.kube.merge_patch import merge_patch
from kafka_rebalance.kube.objects import Json
from kafka_rebalance.kube.spec_changes import change

_FIELDS = ("leaderRate", "followerRate", "unlimited", "logDirRate")


@dataclass(frozen=True, slots=True)
class _Rates:
    """The rates to set. ``given``: by field. Neither rates nor ``unlimited``: those of the cluster apply."""

    given: dict[str, str]
    unlimited: bool = False

    def in_words(self) -> str:
        """For the message."""
        if self.unlimited:
            return "unlimited"
        parts = (
            ("leaderRate", "leaders send at most {} bytes per second"),
            ("followerRate", "followers fetch at most {} bytes per second"),
            ("logDirRate", "each broker copies at most {} bytes per second between its log dirs"),
        )
        said = [text.format(self.given[field]) for field, text in parts if field in self.given]
        return ", ".join(said) or "that of the cluster applies"

    def of_rebalance(self, spec: Json) -> Json | None:
        """The patch of the spec of a KafkaRebalance; None: nothing changes."""
        wanted: Json | None = {"unlimited": None, **self.given} if self.given else None
        if self.unlimited:
            wanted = dict.fromkeys(_FIELDS) | {"unlimited": True}
        now = spec.get("throttle")
        same = now is None if wanted is None else now == merge_patch(now, wanted)
        return None if same else {"spec": {"throttle": wanted}}

    def of_cluster(self, spec: Json) -> Json | None:
        """The patch of the spec of a KafkaReassignmentThrottle; None: nothing changes."""
        wanted = self._cluster_values()
        return None if merge_patch(spec, wanted) == spec else {"spec": wanted}

    def override(self, *, cluster_wide: bool) -> Json:
        """The content of the annotation."""
        if cluster_wide:
            return self._cluster_values()
        return {"unlimited": True} if self.unlimited else dict(self.given)

    def _cluster_values(self) -> Json:
        return {"leaderRate": -1, "followerRate": -1} if self.unlimited else dict(self.given)


@click.command("throttle")
@click.argument("name")
@directory_option
@namespace_options
@override_options
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
@click.option("--end-override", is_flag=True, help="End an override: the rates of the spec apply again.")
@click.option(
    "--cluster-wide", is_flag=True, help="NAME is a KafkaReassignmentThrottle: the rates are for the whole cluster."
)
def throttle(
    name: str,
    scope: ResourceScope,
    *,
    override: OverrideOrder | None,
    rate: str | None,
    leader_rate: str | None,
    follower_rate: str | None,
    log_dir_rate: str | None,
    unlimited: bool,
    cluster_default: bool,
    end_override: bool,
    cluster_wide: bool,
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
    if bool(rates) + unlimited + cluster_default + end_override != 1:
        raise click.UsageError("give rates, --unlimited, --cluster-default or --end-override, and only one of them")
    if override is not None and (cluster_default or end_override):
        raise click.UsageError("--override requires rates or --unlimited")
    if cluster_wide and (log_dir_rate is not None or cluster_default):
        raise click.UsageError("a KafkaReassignmentThrottle has no --log-dir-rate and no --cluster-default")
    plural = REASSIGNMENT_THROTTLES if cluster_wide else REBALANCES
    if end_override:
        asyncio.run(_end(scope, plural, name))
    else:
        asyncio.run(_set(scope, plural, name, _Rates(rates, unlimited), override))


async def _set(scope: ResourceScope, plural: str, name: str, rates: _Rates, override: OverrideOrder | None) -> None:
    cluster_wide, still = plural == REASSIGNMENT_THROTTLES, ""
    seen: Json = {}

    def decide(body: Json) -> Json | None:
        nonlocal seen, still
        seen = body
        if override is not None:
            return override.patch(THROTTLE_OVERRIDE, rates.override(cluster_wide=cluster_wide))
        still = str(overridden_to(body, THROTTLE_OVERRIDE, "until") or "")
        return rates.of_cluster(body["spec"]) if cluster_wide else rates.of_rebalance(body["spec"])

    async with changing(scope) as kube:
        changed = await change(kube, plural, scope.namespace, name, decide)
    set_to = f"set {override.end}" if override is not None else "set"
    what = f"the throttle of {KINDS[plural]} {scope.namespace}/{name}"
    click.echo(f"{what} is {'' if changed else 'already '}{set_to}: {rates.in_words()}")
    if still:
        click.echo(f"warning: an override applies instead until {still}; --end-override ends it", err=True)
    if not cluster_wide:
        warn_if_ended(seen)


async def _end(scope: ResourceScope, plural: str, name: str) -> None:
    def decide(body: Json) -> Json | None:
        there = THROTTLE_OVERRIDE in (body["metadata"].get("annotations") or {})
        return without_override(THROTTLE_OVERRIDE) if there else None

    async with changing(scope) as kube:
        changed = await change(kube, plural, scope.namespace, name, decide)
    what = f"{KINDS[plural]} {scope.namespace}/{name}"
    click.echo(f"the override of {what} has ended" if changed else f"{what} has no override of its throttle")
