"""One field of each value, as a mapping."""

from dataclasses import dataclass

from kafka_rebalance.model.of_each import OfEach


@dataclass(frozen=True)
class Row:
    size: int


class TestOfEach:
    def test_is_the_mapping_of_the_fields(self) -> None:
        """As if it had been copied."""
        rows = {"a": Row(1), "b": Row(0)}
        sizes: OfEach[str, int] = OfEach(rows, "size")
        assert dict(sizes) == {"a": 1, "b": 0}
        assert (len(sizes), "a" in sizes, "c" in sizes) == (2, True, False)
        assert (sizes.get("b", 7), sizes.get("c", 7), sizes.get("c")) == (0, 7, None)
