"""spec and status of KafkaConnection: a Kafka cluster, its credentials, and the namespaces that may use them."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from kafka_rebalance.api.connection import Kafka
from kafka_rebalance.api.fields import (
    ApiModel,
    ByteCount,
    Form,
    ObjectName,
    Rate,
    SomeBrokers,
    Timestamp,
    rule,
    rules,
)
from kafka_rebalance.api.resource_status import Count, ResourceStatus, ShortText
from kafka_rebalance.model.broker_capacity import BrokerCapacity
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.units import parse_duration

_ONE_OF_THREE = "requires exactly one of from, names and selector"
_NO_CAPACITY = "set at least one of disk, networkIn and networkOut"
_BROKER_ONCE = "brokers names a broker twice; each id may be in one entry only"
_ATOMIC = {"x-kubernetes-list-type": "atomic"}

_LABEL = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
LabelValue = Annotated[
    str,
    Field(max_length=63),
    Form(
        f"({_LABEL})?",
        "must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    ),
]
"""The value of a Kubernetes label."""
_LABEL_NAME = Form(
    f"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?{_LABEL}", "must have names of labels, like team or example.org/team"
)

SampleInterval = Annotated[
    str,
    Field(max_length=24),
    Form(
        "[1-9][0-9]{1,2}s|[1-9]m|[1-5][0-9]m|60m|1h",
        "must be a duration of 10s to 1h in one unit, like 30s, 1m or 15m",
    ),
]

MAX_MISSING = 5
MissingPermissionText = Annotated[str, Field(max_length=1024)]

NamespaceNames = Annotated[
    tuple[ObjectName, ...], Field(max_length=200, json_schema_extra={"x-kubernetes-list-type": "set"})
]


class NamespacesFrom(StrEnum):
    """The namespaces that are permitted without naming them."""

    SAME = "Same"
    ALL = "All"


class LabelSelector(ApiModel):
    """Selects namespaces by their labels."""

    match_labels: Annotated[
        dict[str, LabelValue],
        Field(min_length=1, max_length=20, json_schema_extra=rules(_LABEL_NAME.rule_for_keys())),
        AfterValidator(_LABEL_NAME.check_keys),
    ] = Field(description="Labels that a namespace must have, all of them.")


class AllowedNamespaces(ApiModel):
    """The namespaces whose resources may use the connection. The namespace of the KafkaConnection always may."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.from), has(self.names), has(self.selector)].filter(given, given).size() == 1", _ONE_OF_THREE
            )
        )
    )

    from_: NamespacesFrom | None = Field(
        default=None,
        alias="from",
        description="Same: only the namespace of the KafkaConnection. All: all namespaces that the operator watches.",
    )
    names: NamespaceNames | None = Field(default=None, description="Names of namespaces.")
    selector: LabelSelector | None = Field(
        default=None,
        description="Selects namespaces by their labels. Anyone who may label a namespace can therefore permit it. "
        "A change of labels takes effect within a minute.",
    )

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if sum(part is not None for part in (self.from_, self.names, self.selector)) != 1:
            raise ValueError(_ONE_OF_THREE)
        return self

    def permit(self, own: str, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether resources of the namespace, which has these labels, may use a connection in the namespace ``own``."""
        if namespace == own or self.from_ is NamespacesFrom.ALL:
            return True
        if self.selector is not None:
            return self.selector.match_labels.items() <= labels.items()
        return namespace in (self.names or ())


class CapacityValues(ApiModel):
    """The capacity of a broker."""

    disk: ByteCount | None = Field(
        default=None,
        description="Bytes of all log dirs of the broker together. Used only where Kafka does not report them; brokers "
        "since 3.3 do.",
    )
    network_in: Rate | None = Field(
        default=None, description="Bytes per second that the broker can receive. Absent: not known."
    )
    network_out: Rate | None = Field(
        default=None, description="Bytes per second that the broker can send. Absent: not known."
    )


class CapacityRow(CapacityValues):
    """The capacity of some brokers. A value that is absent is that of the default."""

    model_config = ConfigDict(
        json_schema_extra=rules(rule("has(self.disk) || has(self.networkIn) || has(self.networkOut)", _NO_CAPACITY))
    )

    ids: SomeBrokers = Field(description="Ids of the brokers.")

    @model_validator(mode="after")
    def _some_value(self) -> Self:
        if self.disk is None and self.network_in is None and self.network_out is None:
            raise ValueError(_NO_CAPACITY)
        return self


class Capacity(ApiModel):
    """The capacities of the brokers."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.brokers) || self.brokers.all(row, row.ids.all(id, "
                "self.brokers.exists_one(other, id in other.ids)))",
                _BROKER_ONCE,
            )
        )
    )

    default: CapacityValues | None = Field(default=None, description="The capacity of each broker not named below.")
    brokers: Annotated[tuple[CapacityRow, ...], Field(max_length=10, json_schema_extra=_ATOMIC)] = Field(
        default=(), description="The capacities of brokers that differ from the default."
    )

    @model_validator(mode="after")
    def _each_broker_once(self) -> Self:
        ids = [broker for row in self.brokers for broker in row.ids]
        if len(set(ids)) != len(ids):
            raise ValueError(_BROKER_ONCE)
        return self

    def of(self, broker: BrokerId) -> BrokerCapacity:
        """What is known of this broker."""
        general = self.default or CapacityValues()
        row = next((row for row in self.brokers if broker in row.ids), general)
        return BrokerCapacity(
            row.disk or general.disk, row.network_in or general.network_in, row.network_out or general.network_out
        )


class Sampling(ApiModel):
    """How the operator samples the cluster. It chooses no place: that is an option of the operator."""

    interval: SampleInterval = Field(
        default="1m", description="Time between two samples. Rates are of five minutes, so take some in that time."
    )
    consumer_groups: bool = Field(
        default=True,
        description="Read what consumer groups have committed, for bytes out. The Kafka user needs Describe on groups.",
    )

    @property
    def interval_seconds(self) -> int:
        """``interval`` in seconds."""
        return parse_duration(self.interval)


class KafkaConnectionSpec(Kafka):
    """A Kafka cluster, its credentials, and the namespaces that may use them.

    Secrets are read from the namespace of the KafkaConnection.
    """

    allowed_namespaces: AllowedNamespaces = Field(
        default=AllowedNamespaces.model_validate({"from": NamespacesFrom.SAME}),
        description="The namespaces whose KafkaRebalances and KafkaReassignmentThrottles may name this connection. "
        "Absent: only its own.",
    )
    capacity: Capacity | None = Field(
        default=None,
        description="The capacities of the brokers, for planning by load. Absent: disks as Kafka reports them, and all "
        "brokers count as having the same network.",
    )
    sampling: Sampling | None = Field(
        default=None,
        description="Sample sizes and offsets of all partitions into the lake that the operator was started with, for "
        "load models. Absent: no samples are taken.",
    )


class ConnectionBrokers(ApiModel):
    """The brokers of the cluster."""

    live: Count = Field(description="Number of brokers that are registered and not fenced.")


class LastSample(ApiModel):
    """The last sample of the cluster."""

    time: Timestamp = Field(description="When it was taken.")
    rows: Count = Field(description="Number of rows: one for each replica and each log dir.")


class KafkaConnectionStatus(ResourceStatus):
    """Status of the connection."""

    brokers: ConnectionBrokers | None = Field(default=None, description="The brokers of the cluster, as last read.")
    kafka_version: ShortText | None = Field(
        default=None, description='Release line of the brokers, such as "4.3". Absent: not known.'
    )
    missing_permissions: Annotated[tuple[MissingPermissionText, ...], Field(max_length=MAX_MISSING)] = Field(
        default=(), description="Permissions in Kafka that the operator needs and does not have, as of a minute ago."
    )
    last_sample: LastSample | None = Field(
        default=None, description="The last sample that the operator stored. Absent without spec.sampling."
    )
