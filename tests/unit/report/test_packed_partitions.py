"""The rows of partitions as the page unpacks them."""

import base64
import gzip
import json

from tests.unit.report.random_rows import random_rows
from tests.unit.report.report_values import PLAN

from kafka_rebalance.report.packed_partitions import packed
from kafka_rebalance.report.plan_contents import partition_rows_of


def unpacked(data):
    """As partitions.js does it."""
    columns = json.loads(gzip.decompress(base64.b64decode(data)))
    found, at, partition = [], 0, 0
    for topic, count in zip(columns["topics"], columns["counts"], strict=True):
        for _ in range(count):
            partition += columns["partition"][at]
            current = columns["current"][at]
            target = [current[i] if b is None else b for i, b in enumerate(columns["target"][at])]
            found.append((f"{topic}-{partition}", current, target, columns["size"][at], columns["why"][at]))
            at += 1
    return found


class TestPacked:
    def test_round_trip(self):
        """Sizes keep three digits; lists may get longer or shorter."""
        rows = [*partition_rows_of(PLAN, {}), *random_rows(500)]
        found = packed(rows, 1 << 20)
        assert (found.kept, found.total) == (len(rows), len(rows))
        by_name = {name: rest for name, *rest in unpacked(found.data)}
        for row in rows:
            current, target, size, why = by_name[str(row.tp)]
            assert (current, target, why) == (list(row.current), list(row.target), row.why)
            assert abs(size - row.size_bytes) <= row.size_bytes * 0.005

    def test_the_same_bytes_each_time(self):
        assert packed(random_rows(50), 1 << 20).data == packed(random_rows(50), 1 << 20).data

    def test_too_many_for_the_page(self):
        """The first ones are kept, and it says how many."""
        rows = random_rows(2000)
        found = packed(rows, most=10_000)
        assert len(found.data) <= 10_000
        assert 300 < found.kept < 2000 == found.total
        assert {name for name, *_ in unpacked(found.data)} == {str(row.tp) for row in rows[: found.kept]}

    def test_no_room(self):
        """The page says that it shows none."""
        found = packed(random_rows(50), most=-5)
        assert (found.kept, found.total, unpacked(found.data)) == (0, 50, [])
