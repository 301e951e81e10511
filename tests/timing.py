"""Where the time of a run went: a few lines at its end."""

from collections import Counter
from dataclasses import dataclass, field

import pytest

_SHORT_SECONDS = 60
_SLOWEST = 8


def group(nodeid: str) -> str:
    """The directory with tests of one kind."""
    parts = nodeid.partition("::")[0].split("/")
    return "/".join(parts[:2]) if parts[0] == "tests" else parts[0]


@dataclass(eq=False)
class Timing:
    """Adds up what every test took, setting up and tearing down included."""

    seconds: Counter[str] = field(default_factory=Counter)
    """By test."""
    begins: dict[str, float] = field(default_factory=dict)
    """By group, in seconds since the epoch."""
    ends: dict[str, float] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of a test."""
        self.seconds[report.nodeid] += report.duration
        name = group(report.nodeid)
        self.begins[name] = min(self.begins.get(name, report.start), report.start)
        self.ends[name] = max(self.ends.get(name, report.stop), report.stop)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print it where the run was not a short one."""
        if not self.begins or max(self.ends.values()) - min(self.begins.values()) < _SHORT_SECONDS:
            return
        start = min(self.begins.values())
        tests = Counter(group(nodeid) for nodeid in self.seconds)
        total: Counter[str] = Counter()
        for nodeid, seconds in self.seconds.items():
            total[group(nodeid)] += seconds
        terminalreporter.section("where the time went")
        for name, seconds in total.most_common():
            span = f"from second {self.begins[name] - start:.0f} to {self.ends[name] - start:.0f}"
            terminalreporter.line(f"{name:<15} {tests[name]:>5} tests {seconds:>6.0f} s, {span}")
        for nodeid, seconds in self.seconds.most_common(_SLOWEST):
            terminalreporter.line(f"{seconds:>5.0f} s {nodeid}")
