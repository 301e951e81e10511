"""The option --load: a resource to be balanced, with the fields of spec.goals.load."""

from kafka_rebalance.api.rebalance_spec import LoadGoalSpec
from kafka_rebalance.api.validation import validate
from kafka_rebalance.errors import Refused
from kafka_rebalance.model.goals import LoadGoal


def load_goal(text: str) -> LoadGoal:
    """``Disk`` or ``BytesIn,band=5%,statistic=P99``. ValueError says what to write instead."""
    name, *settings = text.split(",")
    fields = {"name": name}
    for setting in settings:
        field, given, value = setting.partition("=")
        if not given or field in fields:
            raise ValueError(f"{setting!r} is not a setting like band=5%, given once")
        fields[field] = value
    try:
        return validate(LoadGoalSpec, fields, "").as_goal()
    except Refused as invalid:
        raise ValueError(invalid.message.removeprefix(": ")) from invalid
