"""What is free in a container, with files as the kernel writes them, and what a process uses of it."""

import subprocess
import sys

import pytest

from kafka_rebalance.reconcile.runs.container_memory import free_bytes, used_bytes


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


def test_what_a_process_uses():
    """Files that it has mapped, and memory that it has only reserved, are not subtracted from what is free either."""
    program = (
        "import mmap; reserved = mmap.mmap(-1, 400 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
        "used = b'x' * (200 << 20); print(flush=True); input()"
    )
    with subprocess.Popen((sys.executable, "-c", program), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert 200 << 20 <= used_bytes(process.pid) < 300 << 20
        process.kill()
        process.wait()
        assert used_bytes(process.pid) == 0
