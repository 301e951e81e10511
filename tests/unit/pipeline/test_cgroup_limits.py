"""Contents of files as kernels, Docker and the kubelet write them."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from kafka_rebalance.pipeline.cgroup_limits import CgroupLimits, files, heap_megabytes, limits, own_limits

GIB = 2**30
NODE = CgroupLimits(64 * GIB, 32)
V1 = """\
12:memory:/kubepods/burstable/pod1/c1
5:cpu,cpuacct:/kubepods/burstable/pod1/c1
1:name=systemd:/kubepods/burstable/pod1/c1
"""
POD = PurePosixPath("kubepods/burstable/pod1")


def read(proc_cgroup: str, contents: dict[str, str]) -> CgroupLimits:
    """Only files that exist and that are looked for."""
    wanted = files(proc_cgroup)
    assert set(map(PurePosixPath, contents)) <= set(wanted)
    return limits({PurePosixPath(path): text for path, text in contents.items()}, NODE)


class TestVersion2:
    def test_in_a_container(self) -> None:
        """It sees its own group as the root."""
        assert read("0::/\n", {"memory.max": "3221225472\n", "cpu.max": "200000 100000\n"}) == CgroupLimits(3 * GIB, 2)

    def test_no_limit(self) -> None:
        assert read("0::/\n", {"memory.max": "max\n", "cpu.max": "max 100000\n"}) == NODE

    def test_the_least_of_all_groups_above_counts(self) -> None:
        """A service of systemd, whose slice has a limit."""
        contents = {
            "a.slice/b.service/memory.max": "max\n",
            "a.slice/memory.max": f"{2 * GIB}\n",
            "a.slice/b.service/cpu.max": "400000 100000\n",
            "a.slice/cpu.max": "300000 100000\n",
        }
        assert read("0::/a.slice/b.service\n", contents) == CgroupLimits(2 * GIB, 3)


class TestVersion1:
    def test_in_a_pod(self) -> None:
        """The path is that of the node, the files are at the root of what is mounted."""
        contents = {
            "memory/memory.limit_in_bytes": f"{GIB}\n",
            "cpu/cpu.cfs_quota_us": "150000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
        }
        assert read(V1, contents) == CgroupLimits(GIB, 2)

    def test_on_the_node(self) -> None:
        contents = {
            f"memory/{POD}/memory.limit_in_bytes": f"{GIB}\n",
            f"memory/{POD}/c1/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
            f"cpu/{POD}/c1/cpu.cfs_quota_us": "-1\n",
            f"cpu/{POD}/c1/cpu.cfs_period_us": "100000\n",
        }
        assert read(V1, contents) == CgroupLimits(GIB, 32)


class TestMessy:
    @pytest.mark.parametrize("cpu", ["50000 100000\n", "1000 100000\n"])
    def test_less_than_a_core_is_one(self, cpu: str) -> None:
        """Spark needs a thread."""
        assert read("0::/\n", {"cpu.max": cpu}).cores == 1

    def test_more_than_the_machine_is_the_machine(self) -> None:
        assert read("0::/\n", {"memory.max": f"{999 * GIB}", "cpu.max": "9900000 100000"}) == NODE

    @pytest.mark.parametrize("text", ["", "?", "1 2 3", "0 0", "-1"])
    def test_what_cannot_be_understood_is_ignored(self, text: str) -> None:
        assert read("0::/\n", {"memory.max": text if text != "1 2 3" else "", "cpu.max": text}) == NODE

    def test_both_versions_at_once(self) -> None:
        """The hybrid of systemd: controllers are in version 1."""
        assert read(f"{V1}0::/\n", {"memory/memory.limit_in_bytes": f"{GIB}"}).memory_bytes == GIB


@pytest.mark.parametrize(
    ("memory", "heap"), [(3 * GIB, 1536), (64 * GIB, 16384), (GIB // 2, 512)], ids=["limited", "whole node", "tiny"]
)
def test_the_heap_leaves_room(memory: int, heap: int) -> None:
    """For Python and for what Java needs beside its heap; a machine without limits has other users."""
    assert heap_megabytes(CgroupLimits(memory, 2), NODE) == heap


def test_of_this_process() -> None:
    """The result is at least one, and at most the number of the machine."""
    found = own_limits()
    assert found.cores >= 1
    assert found.memory_bytes > 0
