"""Sets what a round would have found, decided or stored for a rebalance, for tests of later stages."""

from dataclasses import fields, replace

from kafka_rebalance.reconcile.state.assessment import Advance, Assessment, QueuePlace, Teardown, ThrottleFindings
from kafka_rebalance.reconcile.state.judgement import Judgement, Statuses
from kafka_rebalance.reconcile.state.memory import Problem

_PARTS = {
    "queue": QueuePlace,
    "teardown": Teardown,
    "judgement": Judgement,
    "advance": Advance,
    "throttle": ThrottleFindings,
}


def found(rebalance, **values):
    """Set fields of the assessment or of its parts, by name; ``statuses`` as a dict. Returns the rebalance."""
    if "statuses" in values:
        values["statuses"] = Statuses.of(values["statuses"])
    for name, value in values.items():
        rebalance.assessment = replace(rebalance.assessment, **_with(rebalance.assessment, name, value))
    return rebalance


def _with(assessment, name, value):
    if name in {field.name for field in fields(Assessment)}:
        return {name: value}
    part = next(part for part, kind in _PARTS.items() if name in {field.name for field in fields(kind)})
    return {part: replace(getattr(assessment, part), **{name: value})}


def recorded(rebalance, **values):
    """Set fields of the record; changing the open run resets the assessment."""
    rebalance.record = replace(rebalance.record, **values)
    rebalance.assessment = rebalance.assessment.about(rebalance.record.loaded_run)
    return rebalance


def remembered(rebalance, **values):
    """Set fields of the memory; ``problem`` as an error."""
    if values.get("problem") is not None:
        values["problem"] = Problem("start", values["problem"])
    rebalance.memory = replace(rebalance.memory, **values)
    return rebalance
