"""Reads a KafkaRebalance whose spec is not valid as a whole, to delete it or to let its open run come to rest.

For example, a later version wrote it before the operator was downgraded. Neither may wait for a valid spec.
"""

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from kafka_rebalance.api.v1alpha1 import PLANNING_FIELDS, KafkaRebalance, parse_metadata, parse_rebalance
from kafka_rebalance.errors import Refused


def parse_partly_valid(body: Mapping[str, Any]) -> KafkaRebalance:
    """The resource without its invalid fields: their defaults apply.

    Refused("InvalidSpec") where ``spec.kafka`` is invalid.
    """
    parse_metadata(body)
    spec = copy.deepcopy(dict(body.get("spec", {})))
    while True:
        try:
            return parse_rebalance({**body, "spec": spec})
        except Refused as refused:
            found = refused.__cause__
            if not isinstance(found, ValidationError):
                raise
            # One at a time: several problems may come from one field.
            loc = found.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
            if loc[:1] == ("kafka",) or spec.keys() <= {"kafka"}:
                raise
            _leave_out(spec, loc)


def _leave_out(spec: dict[str, Any], loc: tuple[int | str, ...]) -> None:
    """Remove the field at ``loc`` if objects lead to it.

    If fields contradict each other, remove those that decide what is planned: no new plan is made, and an open run
    keeps its throttle and its deletionPolicy. Without such fields, remove everything but ``kafka``.
    """
    within, path = spec, list(loc)
    while len(path) > 1 and isinstance(within.get(str(path[0])), dict) and path[1] in within[str(path[0])]:
        within = within[str(path.pop(0))]
    if not path or within.pop(str(path[0]), None) is None:
        for name in spec.keys() & PLANNING_FIELDS or spec.keys() - {"kafka"}:
            del spec[name]
