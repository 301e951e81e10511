"""spec.goals.logDirs of KafkaRebalance: the log dirs of each broker as a goal."""

from typing import Annotated

from pydantic import AfterValidator, Field

from kafka_rebalance.api.fields import ApiModel, BrokerNumber, LogDirPath, Percentage
from kafka_rebalance.model.repeated import repeated


class DrainedLogDir(ApiModel):
    """A log dir of a broker that is to hold no replicas."""

    broker: BrokerNumber = Field(description="Id of the broker.")
    path: LogDirPath = Field(description="Path of the log dir, as in the log.dirs of the broker.")


def _each_log_dir_once(rows: tuple[DrainedLogDir, ...]) -> tuple[DrainedLogDir, ...]:
    if (twice := repeated((row.broker, row.path) for row in rows)) is not None:
        broker, path = twice
        raise ValueError(f"names log dir {path} of broker {broker} twice")
    return rows


class LogDirGoals(ApiModel):
    """Moves replicas between the log dirs of each broker (JBOD). Brokers with one log dir are left alone."""

    band: Percentage = Field(
        default=10,
        description="By how much the replicas in a log dir may exceed its share of the bytes on the broker, which is "
        "in proportion to its size.",
        json_schema_extra={"default": "10%"},
    )
    drain: Annotated[
        tuple[DrainedLogDir, ...],
        Field(
            max_length=64,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["broker", "path"]},
        ),
        AfterValidator(_each_log_dir_once),
    ] = Field(
        default=(),
        description="Log dirs to drain: the selected replicas in them move to other log dirs of their brokers.",
    )
