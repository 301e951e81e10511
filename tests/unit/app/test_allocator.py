"""A process whose large blocks are freed is as small as before."""

import subprocess
import sys

_FREES_BLOCKS = """
from kafka_rebalance.app.allocator import return_freed_memory

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

return_freed_memory()
large = b"x" * 2**24
del large  # glibc would now take smaller blocks from its heap
before, blocks, kept = resident(), [], []
for _ in range(100):
    blocks.append(b"x" * 2**20)
    kept.append(bytearray(1000))
del blocks
print(resident() - before)
"""


def test_freed_blocks_are_returned() -> None:
    """Even if what was allocated between them stays. By default, 100 MiB would stay with the process."""
    done = subprocess.run([sys.executable, "-c", _FREES_BLOCKS], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 10 * 2**20
