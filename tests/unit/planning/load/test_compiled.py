"""The loops of the search as machine code."""

from typing import Any

from kafka_rebalance.planning.load import load_state, relief, take_back
from kafka_rebalance.planning.load.compiled import compiled


def test_each_function_of_the_search_is_compiled_once() -> None:
    """Whatever integers its callers have: for the types of its annotations."""
    found = {
        name: len(function.signatures)
        for module in (load_state, relief, take_back)
        for name, function in vars(module).items()
        if hasattr(function, "signatures")
    }
    assert "relieve" in found
    assert found == dict.fromkeys(found, 1)


def test_code_that_is_in_no_file() -> None:
    """It is compiled too."""
    there: dict[str, Any] = {}
    exec("def twice(x: int) -> int:\n    return 2 * x", there)
    found = compiled(there["twice"])
    assert (found(21), found.__name__) == (42, "twice")
