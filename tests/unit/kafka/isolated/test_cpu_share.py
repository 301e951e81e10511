"""Which namespaces have used up their CPU time."""

import os
import subprocess
import sys
import threading

import pytest

from kafka_rebalance.kafka.isolated.cpu_share import (
    LOW_PRIORITY,
    PER_SECOND,
    SAVED_SECONDS,
    CpuShares,
    CpuUse,
    cpu_seconds,
)

_SLEEPING = """
import sys, time
while time.process_time() < 0.1:
    pass
print(flush=True)
sys.stdin.readline()
"""


class TestCpuShares:
    def test_a_namespace_may_spend_what_it_has_saved_up(self):
        shares = CpuShares()
        shares.spend("a", SAVED_SECONDS - 0.1)
        assert not shares.exhausted()
        shares.spend("a", 0.1)
        shares.spend("b", 1.0)
        assert shares.exhausted() == {"a"}

    def test_its_processes_spend_together(self):
        shares = CpuShares()
        for _ in range(4):
            shares.spend("a", SAVED_SECONDS / 4)
        assert shares.exhausted() == {"a"}

    def test_time_gives_it_back(self):
        shares = CpuShares()
        shares.spend("a", SAVED_SECONDS + PER_SECOND)
        shares.pass_time(1.0)
        assert shares.exhausted() == {"a"}
        shares.pass_time(0.1)
        assert not shares.exhausted()

    def test_it_saves_up_no_more_than_the_most(self):
        shares = CpuShares()
        shares.spend("a", 1.0)
        shares.pass_time(3600.0)
        shares.spend("a", SAVED_SECONDS)
        assert shares.exhausted() == {"a"}

    def test_who_has_saved_up_all_takes_no_memory(self):
        shares = CpuShares()
        for number in range(100):
            shares.spend(f"n{number}", 1.0)
        shares.pass_time(60.0)
        assert not shares._left


@pytest.fixture
def sleeping():
    """A process in a group of its own, which has used 0.1 s of CPU time."""
    with subprocess.Popen(
        [sys.executable, "-c", _SLEEPING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as process:
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


class TestCpuUse:
    def test_what_ended_processes_have_used_counts(self, sleeping):
        """A server may crash its client again and again."""
        use = CpuUse()
        for pid in range(2**22 + 1, 2**22 + 11):  # larger than any real process id
            use.ended(pid, "a", SAVED_SECONDS / 10)
        use.look({sleeping: "a"}, 0.0)
        assert os.getpriority(os.PRIO_PROCESS, sleeping) == LOW_PRIORITY

    def test_time_counts_once(self, sleeping):
        use = CpuUse()
        before = os.getpriority(os.PRIO_PROCESS, sleeping)
        use.ended(2**22 + 1, "a", SAVED_SECONDS - 2 * cpu_seconds(sleeping))
        for _ in range(10):
            use.look({sleeping: "a"}, 0.0)
        assert os.getpriority(os.PRIO_PROCESS, sleeping) == before

    def test_processes_that_have_ended_meanwhile_do_no_harm(self, sleeping):
        use = CpuUse()
        use.ended(2**22 + 1, "a", SAVED_SECONDS)
        use.look({2**22 + 2: "a", sleeping: "a"}, 0.0)
        assert os.getpriority(os.PRIO_PROCESS, sleeping) == LOW_PRIORITY


class TestCpuSeconds:
    def test_are_those_of_all_threads(self):
        before, here = cpu_seconds(os.getpid()), os.times()
        thread = threading.Thread(target=lambda: sum(range(5_000_000)))
        thread.start()
        thread.join()
        now = os.times()
        used = now.user + now.system - here.user - here.system
        assert cpu_seconds(os.getpid()) - before == pytest.approx(used, abs=0.05)

    def test_of_one_that_has_ended_are_none(self):
        assert cpu_seconds(2**22 + 1) == 0
