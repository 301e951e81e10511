"""The charts of the report as inline SVG: no library, no script, the same bytes for the same input.

Before and after differ in shape and lightness, not only in colour: a line against a filled column. Colours are classes,
which the page sets for light and dark. A chart of a thousand brokers is two paths, so it stays small.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby

from kafka_rebalance.model.run_record import RunRecord
from kafka_rebalance.report.report_contents import BalancePoint, BeforeAfter, BrokerRow, CopyFlow
from kafka_rebalance.units import format_bytes, format_rate

Format = Callable[[float], str]
_WIDTH, _LEFT, _RIGHT = 1120, 84, 12
_INNER = _WIDTH - _LEFT - _RIGHT
_HEIGHT, _TOP, _BOTTOM = 210, 14, 46
_GAP = 14.0
"""Between racks."""
_LABELLED = 60
"""Above this number of brokers, only racks have labels, and columns no tooltips."""
_CELLS = 32
_CLASSES = 6
_BINS = 160
MOST_LANES = 120


def counted(number: float) -> str:
    """A count."""
    return f"{number:,.0f}"


@dataclass(frozen=True, slots=True)
class _Place:
    row: BrokerRow
    x: float


def broker_columns(rows: Sequence[BrokerRow], of: Callable[[BrokerRow], BeforeAfter], shown: Format, what: str) -> str:
    """A column for each broker, by rack: filled after, a line before. Empty if there is nothing to show."""
    most = max((max(of(row)) for row in rows), default=0)
    if not most:
        return ""
    places, width, racks = _placed(rows)
    base = _TOP + _HEIGHT

    def y(value: float) -> str:
        return _number(base - _HEIGHT * value / _nice(most, shown))

    bar = max(0.6, min(38.0, width * 0.66))
    columns = "".join(f"M{_number(p.x)} {base}V{y(of(p.row).after)}" for p in places if of(p.row).after)
    half = max(0.5, min(24.0, width * 0.48))
    lines = "".join(f"M{_number(p.x - half)} {y(of(p.row).before)}h{_number(2 * half)}" for p in places)
    parts = [_grid(most, shown, base)]
    parts.append(f'<path class="after" stroke-width="{_number(bar)}" d="{columns}"/>')
    parts.append(f'<path class="before" d="{lines}"/>')
    if len(rows) <= _LABELLED:
        parts += [_column_label(p, of(p.row), shown, base, width) for p in places]
    for name, left, right in racks:
        middle = _number((left + right) / 2)
        parts.append(f'<path class="rack" d="M{_number(left)} {base + 24}H{_number(right)}"/>')
        parts.append(f'<text x="{middle}" y="{base + 39}" class="mid">{escape(name)}</text>')
    return _svg(base + _BOTTOM, f"{what} of each broker, before and after", parts)


def _placed(rows: Sequence[BrokerRow]) -> tuple[list[_Place], float, list[tuple[str, float, float]]]:
    """Where the column of each broker is, its width, and name and extent of each rack."""
    groups = [(rack, list(group)) for rack, group in groupby(rows, key=lambda row: row.rack)]
    gap = min(_GAP, 200 / len(groups))
    width = (_INNER - gap * (len(groups) - 1)) / len(rows)
    places, racks, x = list[_Place](), list[tuple[str, float, float]](), float(_LEFT)
    for rack, group in groups:
        left = x
        for row in group:
            places.append(_Place(row, x + width / 2))
            x += width
        racks.append((f"rack {rack}" if rack is not None else "no rack", left, x))
        x += gap
    return places, width, racks if len(racks) > 1 or racks[0][0] != "no rack" else []


def _column_label(place: _Place, figures: BeforeAfter, shown: Format, base: int, width: float) -> str:
    row = place.row
    name = f"broker {row.broker}" + ("" if row.target else ", leaves")
    title = f"{name}: {shown(figures.before)} before, {shown(figures.after)} after"
    left, kind = _number(place.x - width / 2), "mid" if row.target else "mid leaves"
    return (
        f'<text x="{_number(place.x)}" y="{base + 16}" class="{kind}">{row.broker}</text>'
        f'<rect x="{left}" y="{_TOP}" width="{_number(width)}" height="{_HEIGHT}" class="hover">'
        f"<title>{escape(title)}</title></rect>"
    )


def flow_matrix(flows: Iterable[CopyFlow], rows: Sequence[BrokerRow]) -> tuple[str, str]:
    """The bytes, or where sizes are unknown the replicas, copied from each row to each column; and by what it groups.

    Single brokers while there are at most 32 that take part, else racks, else ranges of ids.
    """
    flows = list(flows)
    if not flows:
        return "", ""
    in_bytes = any(flow.size_bytes for flow in flows)
    name_of, by = _grouping(flows, rows)
    cells: dict[tuple[str, str], int] = {}
    for flow in flows:
        key = name_of[flow.source], name_of[flow.destination]
        cells[key] = cells.get(key, 0) + (flow.size_bytes if in_bytes else flow.replicas)
    order = list(dict.fromkeys(name_of[row.broker] for row in rows if row.broker in name_of))
    sources, destinations = ([n for n in order if any(key[i] == n for key in cells)] for i in (0, 1))
    shown = format_bytes if in_bytes else counted
    return _matrix(cells, sources, destinations, shown), by


def _grouping(flows: Sequence[CopyFlow], rows: Sequence[BrokerRow]) -> tuple[dict[int, str], str]:
    involved = sorted({flow.source for flow in flows} | {flow.destination for flow in flows})
    if len(involved) <= _CELLS:
        return {b: str(b) for b in involved}, "brokers"
    rack = {row.broker: row.rack for row in rows}
    if 1 < len({rack.get(b) for b in involved}) <= _CELLS:
        return {b: f"{rack.get(b) or 'no rack'}" for b in involved}, "racks"
    each = -(-len(involved) // _CELLS)
    ranges = [involved[i : i + each] for i in range(0, len(involved), each)]
    return {b: f"{group[0]}-{group[-1]}" for group in ranges for b in group}, "ranges of broker ids"


def _matrix(cells: dict[tuple[str, str], int], sources: list[str], destinations: list[str], shown: Format) -> str:
    side = max(22.0, min(72.0, 760 / max(len(destinations), len(sources))))
    left, top, most = 110, 44, max(cells.values())
    parts = [f'<text x="{left}" y="14">to</text><text x="{left - 10}" y="{top - 8}" class="end">from</text>']
    for i, name in enumerate(destinations):
        parts.append(f'<text x="{_number(left + (i + 0.5) * side)}" y="{top - 8}" class="mid">{escape(name)}</text>')
    whole = f'width="{_number(len(destinations) * side - 2)}" height="{_number(len(sources) * side - 2)}"'
    parts.append(f'<rect x="{left}" y="{top}" {whole} class="flow0"/>')
    for j, source in enumerate(sources):
        y = top + j * side
        parts.append(f'<text x="{left - 10}" y="{_number(y + side / 2 + 4)}" class="end">{escape(source)}</text>')
        for i, destination in enumerate(destinations):
            value, x = cells.get((source, destination), 0), left + i * side
            if not value:
                continue
            level = 1 + min(_CLASSES - 1, int(_CLASSES * value / most * 0.999))
            square = f'x="{_number(x)}" y="{_number(y)}" width="{_number(side - 2)}" height="{_number(side - 2)}"'
            title = escape(f"{source} to {destination}: {shown(value)}")
            parts.append(f'<rect {square} class="flow{level}"><title>{title}</title></rect>')
            if side >= 56:
                parts.append(_cell_text(x + side / 2 - 1, y + side / 2 + 4, shown(value), level))
    return _svg(int(top + len(sources) * side + 8), "Data copied from row to column", parts)


def _cell_text(x: float, y: float, text: str, level: int) -> str:
    return f'<text x="{_number(x)}" y="{_number(y)}" class="mid in{level}">{escape(text)}</text>'


def balance_curve(points: Sequence[BalancePoint], moves: int) -> str:
    """The difference between the fullest and the emptiest broker after each number of moves; ``moves``: of the plan."""
    if len(points) < 2:
        return ""
    last, most = points[-1].moves or 1, max(p.most - p.fewest for p in points) or 1
    base = _TOP + _HEIGHT

    def at(moves: float, spread: float) -> tuple[float, float]:
        return _LEFT + _INNER * moves / last, base - _HEIGHT * spread / _nice(most, counted)

    spots = [(p, *at(p.moves, p.most - p.fewest)) for p in points]
    line = "L".join(f"{_number(x)} {_number(y)}" for _, x, y in spots)
    parts = [_grid(most, counted, base), f'<path class="curve" d="M{line}"/>']
    for p, x, y in spots:
        title = f"{p.moves} moves, {format_bytes(p.data_bytes)}: {p.fewest} to {p.most} replicas per broker"
        parts.append(f'<circle cx="{_number(x)}" cy="{_number(y)}" r="5" class="spot"><title>{title}</title></circle>')
    x, _ = at(min(moves, last), 0)
    parts.append(f'<path class="mark" d="M{_number(x)} {_TOP}V{base}"/>')
    side = ("end", -6) if x > _WIDTH / 2 else ("", 6)
    parts.append(f'<text x="{_number(x + side[1])}" y="{_TOP + 12}" class="{side[0]}">this plan: {moves} moves</text>')
    parts.append(f'<text x="{_LEFT}" y="{base + 18}">{points[0].moves} moves</text>')
    parts.append(f'<text x="{_WIDTH - _RIGHT}" y="{base + 18}" class="end">{last} moves</text>')
    return _svg(base + 26, "Imbalance by number of moves", parts)


def copy_rates(record: RunRecord) -> str:
    """Bytes per second of all copies of a run over time, and the rate that each broker was allowed."""
    steps = [step for step in record.steps if step.ended_at >= step.started_at]
    span = (record.ended_at - record.started_at).total_seconds()
    if not steps or span <= 0:
        return ""
    width = span / _BINS
    rates = [0.0] * _BINS
    for step in steps:
        begin, end = ((t - record.started_at).total_seconds() for t in (step.started_at, step.ended_at))
        begin, end = max(0.0, begin), min(span, max(end, begin + width / 10))
        rate = step.bytes_copied / max(end - begin, 0.1)
        for at in range(int(begin / width), min(_BINS, int(end / width) + 1)):
            share = min(end, (at + 1) * width) - max(begin, at * width)
            rates[at] += rate * max(0.0, share) / width
    limits = [(step.started_at, step.follower_rate) for step in steps if step.follower_rate is not None]
    most = max([*rates, *(rate for _, rate in limits)])
    base = _TOP + _HEIGHT
    each = _INNER / _BINS

    def y(value: float) -> str:
        return _number(base - _HEIGHT * value / _nice(most, format_rate))

    area = "".join(f"V{y(rate)}h{_number(each)}" for rate in rates)
    parts = [_grid(most, format_rate, base), f'<path class="area" d="M{_LEFT} {base}{area}V{base}Z"/>']
    parts += _limit_line(limits, record.started_at, span, y)
    parts += _times(record, base)
    return _svg(base + 26, "Rate of all copies over time, and the throttle of a broker", parts)


def _limit_line(
    limits: Sequence[tuple[datetime, int]], began: datetime, span: float, y: Callable[[float], str]
) -> list[str]:
    if not limits:
        return []
    path, before = "", None
    for at, rate in sorted(limits):
        x = _LEFT + _INNER * min(1.0, max(0.0, (at - began).total_seconds() / span))
        if rate != before:
            path += f"M{_LEFT} {y(rate)}" if before is None else f"H{_number(x)}V{y(rate)}"
        before = rate
    return [f'<path class="limit" d="{path}H{_WIDTH - _RIGHT}"/>']


def step_lanes(record: RunRecord) -> str:
    """A line from begin to end for each step; of many, evenly chosen ones. Empty if there are none."""
    steps, span = (
        sorted(record.steps, key=lambda s: s.started_at),
        (record.ended_at - record.started_at).total_seconds(),
    )
    if not steps or span <= 0:
        return ""
    shown = [steps[i * len(steps) // min(len(steps), MOST_LANES)] for i in range(min(len(steps), MOST_LANES))]
    height = max(3.0, min(16.0, 480 / len(shown)))
    parts = []
    for lane, step in enumerate(shown):
        begin, end = ((t - record.started_at).total_seconds() / span for t in (step.started_at, step.ended_at))
        x, wide = _LEFT + _INNER * max(0.0, begin), max(1.5, _INNER * (min(1.0, end) - max(0.0, begin)))
        seconds = (step.ended_at - step.started_at).total_seconds()
        to = ", ".join(map(str, step.destinations))
        title = f"{step.tp} to {to}: {format_bytes(step.bytes_copied)} in {seconds:.0f} s"
        place = f'x="{_number(x)}" y="{_number(_TOP + lane * height)}"'
        size = f'width="{_number(wide)}" height="{_number(height * 0.7)}"'
        parts.append(f'<rect {place} {size} class="lane"><title>{escape(title)}</title></rect>')
        if height >= 12:
            y = _number(_TOP + lane * height + height * 0.62)
            parts.append(f'<text x="{_LEFT - 8}" y="{y}" class="end small">{escape(_short(str(step.tp)))}</text>')
    base = int(_TOP + len(shown) * height)
    return _svg(base + 26, "Steps over time", [*parts, *_times(record, base)])


def phase_bar(phases: Iterable[tuple[str, int]]) -> str:
    """One bar with the partitions in each phase."""
    found = [(name, count) for name, count in phases if count]
    total = sum(count for _, count in found)
    parts, x = [], 0.0
    for name, count in found:
        wide, kind = _WIDTH * count / total, name.replace(" ", "-")
        parts.append(
            f'<rect x="{_number(x)}" y="0" width="{_number(wide)}" height="34" class="phase {kind}">'
            f"<title>{count} {name}</title></rect>"
        )
        if wide > 110:
            parts.append(f'<text x="{_number(x + 8)}" y="22" class="on {kind}-text">{count:,} {name}</text>')
        x += wide
    return _svg(36, "Partitions by phase", parts) if found else ""


def _times(record: RunRecord, base: int) -> list[str]:
    begin, end = (f"{t:%Y-%m-%d %H:%M:%S} UTC" for t in (record.started_at, record.ended_at))
    return [
        f'<text x="{_LEFT}" y="{base + 18}">{begin}</text>',
        f'<text x="{_WIDTH - _RIGHT}" y="{base + 18}" class="end">{end}</text>',
    ]


def _grid(most: float, shown: Format, base: int) -> str:
    top = _nice(most, shown)
    marks = [top * i / 4 for i in range(5)]
    if shown is counted:
        marks = [mark for mark in marks if mark == int(mark)]
    parts = []
    for mark in marks:
        y = _number(base - _HEIGHT * mark / top)
        parts.append(f'<path class="grid" d="M{_LEFT} {y}H{_WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text x="{_LEFT - 8}" y="{_number(base - _HEIGHT * mark / top + 4)}" class="end">{shown(mark)}</text>'
        )
    return "".join(parts)


def _nice(most: float, shown: Format) -> float:
    """The end of the axis: the first of 1, 2, 4, 6, 8 times a power of ten (of KiB, MiB, …) that is not below."""
    scale = 1.0
    while shown is not counted and scale * 1024 <= most:
        scale *= 1024
    unit = 1.0
    while unit * 10 < most / scale:
        unit *= 10
    return next(scale * unit * step for step in (1, 2, 4, 6, 8, 10) if scale * unit * step >= most)


def _short(text: str) -> str:
    return text if len(text) <= 12 else f"{text[:4]}…{text[-7:]}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg(height: int, label: str, parts: Sequence[str]) -> str:
    inside = "".join(parts)
    return f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">{inside}</svg>'
