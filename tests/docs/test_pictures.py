"""The pictures of the documentation, and the terminal that the recorded one is made with."""

import re

import pytest
from e2e.cast.animation import animated, spans
from e2e.cast.recording import Frame
from e2e.cast.terminal import Terminal
from tests.docs.pages import ROOT

RUN = ROOT / "docs" / "pictures" / "run.svg"


class TestTheRun:
    """docs/pictures/run.svg, as `make docs-pictures` has written it."""

    def test_it_is_small_and_needs_no_network(self) -> None:
        text = RUN.read_text(encoding="utf-8")
        assert len(text) < 200_000
        assert set(re.findall(r"https?://[^\s\"<)]+", text)) == {
            "http://www.w3.org/2000/svg",
            "https://www.textualize.io",
        }
        assert "<script" not in text

    def test_it_shows_the_whole_story(self) -> None:
        text = RUN.read_text(encoding="utf-8").replace("&#160;", " ")
        for shown in ("proved minimal", "Rebalancing", "6 of 6 partitions are at their targets", "rolled back"):
            assert shown in text


class TestTerminal:
    """What a program writes, and what is seen."""

    def test_rows_are_replaced(self) -> None:
        """As `rich` refreshes: back to the first row, with every row erased."""
        terminal = Terminal()
        terminal.write("$ run\r\n\x1b[?25l10%\r\ncopying")
        terminal.write("\r\x1b[2K\x1b[1A\x1b[2K20%\r\ncop")
        terminal.write("ying\r\n")
        assert terminal.last(24) == ("$ run", "20%", "copying", "")

    def test_a_sequence_in_two_pieces(self) -> None:
        terminal = Terminal()
        terminal.write("a\x1b[")
        terminal.write("2Kb")
        assert terminal.last(24) == ("b",)

    def test_the_window_has_the_last_rows(self) -> None:
        terminal = Terminal()
        terminal.write("1\n2\n3")
        assert terminal.last(2) == ("2", "3")

    @pytest.mark.parametrize("sequence", ["\x1b[5B", "\x1b[2J", "\x1b]0;title\x07"])
    def test_another_sequence_is_refused(self, sequence: str) -> None:
        with pytest.raises(ValueError, match="control sequence"):
            Terminal().write(sequence)


class TestAnimation:
    """Each row is visible from its time to its end."""

    FRAMES = (Frame(0, ("$ run",)), Frame(1, ("$ run", "10%")), Frame(2, ("$ run", "20%")))

    def test_a_row_that_stays_is_one_row(self) -> None:
        assert sorted(spans(self.FRAMES, 4)) == [(0, "$ run", 0, 4), (1, "10%", 1, 2), (1, "20%", 2, 4)]

    def test_a_still_picture_shows_the_end(self) -> None:
        """Programs without animations, and readers who want none, see the last frame."""
        svg = animated(self.FRAMES, title="run", still=2)
        hidden = {int(number) for number in re.findall(r"\.t(\d+) \{ visibility: hidden \}", svg)}
        texts = {int(number): text for number, text in re.findall(r'class="t(\d+) [^>]*>([^<]*)</text>', svg)}
        assert {text for number, text in texts.items() if number not in hidden} == {"$&#160;run", "20%"}
