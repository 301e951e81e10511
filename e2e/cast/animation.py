"""An animated SVG of a recording: each row of text is visible from its time to its end, without a script."""

import io
import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from e2e.cast.recording import HEIGHT, WIDTH, Frame

_ID = "cast"
_LINE_HEIGHT = 24.4
"""Of the export of rich, in its units."""
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_OF_LINE = re.compile(rf'<text ([^>]*) clip-path="url\(#{_ID}-line-(\d+)\)">([^<]*)</text>')
_CLIPS = re.compile(rf'<clipPath id="{_ID}-line-\d+">.*?</clipPath>\s*', re.DOTALL)
_HEIGHTS = re.compile(r'(viewBox="0 0 [\d.]+ |height=")([\d.]+)"')

Row = tuple[int, str, float, float]
"""Place in the window, text, and the seconds from which and to which it is visible."""


def spans(frames: Sequence[Frame], end: float) -> list[Row]:
    """The rows of all frames; one that stays as it is from frame to frame is one row."""
    done: list[Row] = []
    open_rows: dict[int, tuple[str, float]] = {}
    for frame in (*frames, Frame(end, ())):
        now = dict(enumerate(frame.rows))
        for place, (text, since) in list(open_rows.items()):
            if now.get(place) != text:
                del open_rows[place]
                if text.strip() and frame.at > since:
                    done.append((place, text, since, frame.at))
        for place, text in now.items():
            open_rows.setdefault(place, (text, frame.at))
    return done


def thinned(frames: Sequence[Frame], apart: float) -> list[Frame]:
    """The last frame of each period of this many seconds, and times since the first frame."""
    start = frames[0].at
    chosen: dict[int, Frame] = {}
    for frame in frames:
        period = int((frame.at - start) / apart)
        chosen[period] = Frame(period * apart, frame.rows)
    return list(chosen.values())


def animated(frames: Sequence[Frame], *, title: str, apart: float = 0.5, still: float = 5.0) -> str:
    """The SVG. It repeats after `still` seconds of the last frame, which is also what a still picture shows."""
    chosen = thinned(frames, apart)
    end = chosen[-1].at + still
    rows = spans(chosen, end)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for _, text, _, _ in rows:
        console.print(Text.from_ansi(text), no_wrap=True, crop=True)
    exported = console.export_svg(title=title, unique_id=_ID)
    body = _CLIPS.sub("", _FONT.sub("", exported))
    body = _OF_LINE.sub(lambda found: _placed(rows, found[1], int(found[2]), found[3]), body)
    return _sized(body.replace("</style>", _keyframes(rows, end) + "</style>"), len(rows))


def _placed(rows: Sequence[Row], attributes: str, number: int, text: str) -> str:
    """The text in its row of the window; the export has every text in a row of its own."""
    if not text.strip():
        return ""
    up = (rows[number][0] - number) * _LINE_HEIGHT
    placed = attributes.replace('class="', f'transform="translate(0,{up:.1f})" class="t{number} ')
    return f"<text {placed}>{text}</text>"


def _keyframes(rows: Sequence[Row], end: float) -> str:
    """When each row is visible."""
    css = []
    for number, (_, _, since, until) in enumerate(rows):
        first, last = 100 * since / end, 100 * until / end
        hidden = "" if until == end else f".t{number} {{ visibility: hidden }} "
        after = "" if until == end else f" {last:.2f}% {{ visibility: hidden }}"
        css.append(
            f"{hidden}@keyframes k{number} {{ 0% {{ visibility: {'hidden' if since else 'visible'} }}"
            f" {first:.2f}% {{ visibility: visible }}{after} }}"
        )
    moving = " ".join(
        f".t{number} {{ animation: k{number} {end:g}s step-end infinite }}" for number in range(len(rows))
    )
    return "\n".join(css) + f"\n@media (prefers-reduced-motion: no-preference) {{ {moving} }}\n"


def _sized(svg: str, exported: int) -> str:
    """The window has `HEIGHT` rows, whatever the number of exported rows."""
    less = (exported - HEIGHT) * _LINE_HEIGHT

    def smaller(found: re.Match[str]) -> str:
        height = float(found[2])
        return f'{found[1]}{height - less if height > _LINE_HEIGHT * 2 else height:.1f}"'

    return _HEIGHTS.sub(smaller, svg)
