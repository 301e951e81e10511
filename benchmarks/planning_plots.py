"""Plots of the planning benchmark as SVG; the same values give byte-identical files."""

import statistics
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "planning"
mpl.rcParams["svg.fonttype"] = "none"

import matplotlib.pyplot as plt  # noqa: E402 - after the choice of how to draw

from benchmarks.published import CRUISE_CONTROL  # noqa: E402

PANELS = ("add", "remove", "drift")
STYLE = {
    "planner": ("this planner", "C0", "o"),
    "generate": ("Kafka's --generate", "C1", "s"),
    "greedy": ("KAFKA-19048 greedy", "C2", "^"),
    "flow": ("exact flow", "C3", "v"),
    "mip": ("MIP", "C4", "D"),
    "published": ("Cruise Control (other run)", "C5", "x"),
}

Found = dict[str, Any]


def draw(rows: list[Found], folder: Path) -> None:
    """``planning-moves.svg``, ``planning-seconds.svg`` and ``planning-memory.svg``."""
    folder.mkdir(exist_ok=True)
    bounds = {(row["partitions"], row["what"]): row["bound"] for row in rows if row["tool"] == "planner"}
    quoted = [{**row, "tool": "published"} for row in CRUISE_CONTROL]
    moves = [
        {**row, "value": row["moves"] / row.get("bound", bounds.get((row["partitions"], row["what"])))}
        for row in [*rows, *quoted]
        if "moves" in row and row["what"] in PANELS
    ]
    seconds = [{**row, "value": statistics.median(row["seconds"])} for row in rows]
    seconds += [{**row, "value": row["seconds"]} for row in quoted]
    memory = [{**row, "value": row["peakMB"]} for row in rows if "peakMB" in row]
    _plot(moves, "moves / bound", folder / "planning-moves.svg")
    _plot(seconds, "seconds, one core", folder / "planning-seconds.svg")
    _plot(memory, "peak MB of the process", folder / "planning-memory.svg")


def _plot(rows: list[Found], label: str, path: Path) -> None:
    figure, panels = plt.subplots(1, len(PANELS), sharey=True, figsize=(10, 4), layout="constrained")
    for what, axes in zip(PANELS, panels, strict=True):
        for tool, (name, colour, marker) in STYLE.items():
            points = sorted((r["partitions"], r["value"]) for r in rows if (r["what"], r["tool"]) == (what, tool))
            line = "none" if tool == "published" else "-"
            if points:
                axes.plot(*zip(*points, strict=True), marker=marker, color=colour, linestyle=line, label=name)
        axes.set(xscale="log", yscale="log", title=what, xlabel="partitions")
        axes.minorticks_off()
        axes.grid(visible=True, which="major", linewidth=0.3)
    panels[0].set_ylabel(label)
    shown = {name: line for axes in panels for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
