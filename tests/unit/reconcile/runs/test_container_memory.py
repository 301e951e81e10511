"""What is free in a container, with files as the kernel writes them."""

import pytest

from kafka_rebalance.reconcile.runs.container_memory import free_bytes


def _files(root, contents):
    for name, text in contents.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("contents", "free"),
    [
        ({"memory.max": "1000\n", "memory.stat": "anon 400\nfile 500\n"}, 600),
        ({"memory.max": "1000\n", "memory.stat": "anon 1400\nfile 500\n"}, 0),
        ({"memory.max": "max\n", "memory.stat": "anon 400\n"}, None),
        ({"memory/memory.limit_in_bytes": "1000\n", "memory/memory.stat": "rss 1\ntotal_rss 300\n"}, 700),
        ({"memory/memory.limit_in_bytes": f"{2**63 - 4096}\n", "memory/memory.stat": "total_rss 300\n"}, None),
        ({"memory.max": "1000\n"}, None),
        ({}, None),
    ],
)
def test_caches_of_files_do_not_count(tmp_path, contents, free):
    """Both versions of cgroups; None without a limit."""
    assert free_bytes(str(_files(tmp_path, contents))) == free
