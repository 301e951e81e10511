"""The states of a KafkaRebalance in docs/architecture.md, from the state table: a diagram and what it does not show.

``python -m tests.arch.state_diagram docs/architecture.md`` writes it between its two markers. Everything else in this
module is pure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.arch.state_transitions import transitions

from kafka_rebalance.api.conditions import ReadySummary
from kafka_rebalance.api.rebalance_states import FIRST, GROUPS, STATES, Node, StateGroup
from kafka_rebalance.reasons import Reason

BEGIN, END = "<!-- states: begin -->", "<!-- states: end -->"

_SECTION = """\
<!-- Generated from operator/kafka_rebalance/api/rebalance_states.py by `make docs-diagrams`; do not edit. -->

The state of a KafkaRebalance is the reason of its `Ready` condition. It is not stored: each round of the operator
computes it from the spec, the stored run and the cluster. An arrow means that the next status may have that state; an
arrow from or to a box holds for each state in the box.

```mermaid
{diagram}
```

| Box | What its states have in common |
| --- | --- |
{boxes}

- In {within}, any state may follow any other state of the same box.
- `Ready` is True in {done}. `Stalled` is True in {stuck}. `Reconciling` is True in all others.
- Every other reason of `Ready` is a problem; [Conditions](conditions.md) explains all reasons. `Stalled` is True. A
  problem may interrupt any state; afterwards the state is one that the interrupted state can reach. The first status
  says {first}, or a problem. It is a state in Ended if the resource had ended before it was restored from a backup.
- A resource is gone at once when it is deleted and no step was sent to Kafka, the run is closed, or `deletionPolicy` is
  `Abandon`.
"""


def section() -> str:
    """The text between the markers."""
    return _SECTION.format(
        diagram=diagram(),
        boxes="\n".join(f"| {group} | {found.meaning} |" for group, found in GROUPS.items()),
        within=_listed([str(group) for group in GROUPS if (group, group) in transitions()]),
        done=_listed([f"`{reason}`" for reason, state in STATES.items() if state.summary is ReadySummary.DONE]),
        stuck=_listed([f"`{reason}`" for reason, state in STATES.items() if state.summary is ReadySummary.STUCK]),
        first=_listed([f"`{node}`" for node in FIRST if isinstance(node, Reason)], "or"),
    )


def with_section(page: str) -> str:
    """The page with an up-to-date section. ValueError if a marker is missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the markers {BEGIN} and {END}")
    return f"{before}{begin}\n{section()}{end}{after}"


def diagram() -> str:
    """The table as a Mermaid stateDiagram-v2."""
    lines = ["stateDiagram-v2", *_boxes(None, "    ")]
    lines += [f"    {_name(before)} --> {after}" for before, after in transitions() if before != after]
    lines += [f"    {group} --> [*]" for group in (StateGroup.DELETING, StateGroup.ENDED)]
    return "\n".join(lines)


def _boxes(parent: StateGroup | None, indent: str) -> Iterator[str]:
    """The states, each in its group."""
    for reason, state in STATES.items():
        if state.group is parent:
            yield f"{indent}{reason}"
    for group, found in GROUPS.items():
        if found.parent is parent:
            yield f"{indent}state {group} {{"
            yield from _boxes(group, indent + "    ")
            yield f"{indent}}}"


def _name(node: Node | None) -> str:
    return "[*]" if node is None else str(node)


def _listed(names: list[str], word: str = "and") -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_section(path.read_text(encoding="utf-8")), encoding="utf-8")
