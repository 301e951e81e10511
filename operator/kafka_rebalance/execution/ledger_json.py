"""The throttle ledger as JSON values, for the store. Pure."""

from collections.abc import Mapping
from typing import Any

from kafka_rebalance.execution.ledger import Before, EmergencyBrake, Ledger, RateRecord
from kafka_rebalance.model.topology import BrokerId, TopicPartition


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """Sorted, so that equal ledgers give equal texts."""
    return {
        "version": 2,
        "brokers": {
            str(broker): {name: _record_to_json(record) for name, record in sorted(names.items())}
            for broker, names in sorted(ledger.brokers.items())
        },
        "topics": {
            topic: {name: _before_to_json(before) for name, before in sorted(names.items())}
            for topic, names in sorted(ledger.topics.items())
        },
        "entries": {
            topic: {name: sorted(items) for name, items in sorted(lists.items())}
            for topic, lists in sorted(ledger.entries.items())
        },
        "others": [[tp.topic, tp.partition] for tp in sorted(ledger.foreign)],
        "cordons": sorted(ledger.cordons),
    }


def ledger_from_json(data: Any) -> Ledger:
    """Raises KeyError, TypeError or ValueError for any other shape: never guess what to restore."""
    if _mapping(data)["version"] != 2:
        raise ValueError(f"unknown version {data['version']!r}")
    return Ledger(
        {
            BrokerId(int(broker)): {name: _record(record) for name, record in _mapping(names).items()}
            for broker, names in _mapping(data["brokers"]).items()
        },
        {
            topic: {name: _before(before) for name, before in _mapping(names).items()}
            for topic, names in _mapping(data["topics"]).items()
        },
        {
            topic: {name: frozenset(_texts(items)) for name, items in _mapping(lists).items()}
            for topic, lists in _mapping(data["entries"]).items()
        },
        frozenset(_partition(row) for row in _list(data["others"])),
        # A ledger of an earlier version has none.
        frozenset(BrokerId(_number(broker)) for broker in _list(data.get("cordons", []))),
    )


def _record_to_json(record: RateRecord) -> dict[str, Any]:
    brake = record.brake
    row = {
        "before": _before_to_json(record.original),
        "written": sorted(record.possibly_ours),
        "applied": record.intended,
        "owner": record.set_by_others and _before_to_json(record.set_by_others),
        "basis": record.replication_set_by_others and _before_to_json(record.replication_set_by_others),
        "ceiling": brake and {"rate": brake.rate, "asked": dict(sorted(brake.asked.items()))},
    }
    return {name: value for name, value in row.items() if value is not None}


def _before_to_json(before: Before) -> dict[str, Any]:
    return {"value": before.value, "dynamic": before.dynamic}


def _record(row: Any) -> RateRecord:
    fields = _mapping(row)
    brake = _mapping(fields["ceiling"]) if "ceiling" in fields else None
    return RateRecord(
        _before(fields["before"]),
        frozenset(_number(rate) for rate in _list(fields["written"])),
        _number(fields["applied"]) if "applied" in fields else None,
        _before(fields["owner"]) if "owner" in fields else None,
        _before(fields["basis"]) if "basis" in fields else None,
        None if brake is None else _brake(brake),
    )


def _brake(row: Mapping[str, Any]) -> EmergencyBrake:
    return EmergencyBrake(
        _number(row["rate"]), {claim: _number(rate) for claim, rate in _mapping(row["asked"]).items()}
    )


def _before(row: Any) -> Before:
    value, dynamic = _mapping(row)["value"], row["dynamic"]
    if not isinstance(dynamic, bool) or not (value is None or isinstance(value, str)):
        raise ValueError(f"{row!r} is not a value and whether it was dynamic")
    return Before(value, dynamic)


def _partition(row: Any) -> TopicPartition:
    topic, partition = _list(row)
    if not isinstance(topic, str):
        raise TypeError(f"{row!r} is not a topic and a partition")
    return TopicPartition(topic, _number(partition))


def _mapping(data: Any) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise TypeError(f"{data!r} is not an object")
    return data


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError(f"{data!r} is not a list")
    return data


def _number(data: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise TypeError(f"{data!r} is not a number")
    return data


def _texts(items: Any) -> list[str]:
    if not all(isinstance(item, str) for item in _list(items)):
        raise ValueError(f"{items!r} is not a list of entries")
    return items  # type: ignore[no-any-return]
