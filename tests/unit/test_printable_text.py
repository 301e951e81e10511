"""Text of others, as people see it."""

from kafka_rebalance.printable_text import printable


def test_printable_text_is_unchanged() -> None:
    assert printable("größe -> 5 KiB…") == "größe -> 5 KiB…"


def test_what_controls_a_terminal_is_escaped() -> None:
    """Escape sequences of 7 and 8 bits, line ends, and changes of the direction of writing."""
    assert printable("a\x1b[2J\x9b1m\r\n\u202eb") == "a\\x1b[2J\\x9b1m\\r\\n\\u202eb"


def test_kept() -> None:
    assert printable("a\nb\r", kept="\n") == "a\nb\\r"
