"""The states in docs/architecture.md."""

import re
from pathlib import Path

import pytest
from tests.arch.state_diagram import BEGIN, END, diagram, with_section

from kafka_rebalance.api.rebalance_states import STATES

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date():
    """`make docs-diagrams` updates it."""
    assert with_section(PAGE) == PAGE


def test_what_is_around_the_section_stays():
    """The text around it is written by hand."""
    page = with_section(f"before\n{BEGIN}\nstale\n{END}\nafter\n")
    assert page.startswith(f"before\n{BEGIN}\n")
    assert page.endswith(f"{END}\nafter\n")
    assert "stale" not in page


def test_a_page_without_markers_is_refused():
    """The section is not appended to a page that has no place for it."""
    with pytest.raises(ValueError, match="markers"):
        with_section("before")


def test_the_diagram_has_each_state_once():
    """Each state is in its group, and arrows use no other names."""
    lines = [line.strip() for line in diagram().splitlines()]
    assert sorted(line for line in lines if line in set(STATES)) == sorted(STATES)
    boxes = {found[1] for line in lines if (found := re.fullmatch(r"state (\w+) \{", line))}
    ends = {end for line in lines if "-->" in line for end in line.split(" --> ")}
    assert ends <= {*STATES, *boxes, "[*]"}
