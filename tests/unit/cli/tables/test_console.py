"""What people see of names that others have chosen."""

from kafka_rebalance.cli.tables.console import plain_console, plain_table

HOSTILE = "\x1b]0;x\x07[/bold]\x1b[2J"
SHOWN = "\\x1b]0;x\\x07[/bold]\\x1b[2J"


def test_names_control_no_terminal(capsys) -> None:
    """In tables, with the width of what is shown, and in lines."""
    table = plain_table("RACK", "NEXT")
    table.add_row(HOSTILE, "b")
    plain_console().print(table, HOSTILE)
    header, row, line = capsys.readouterr().out.splitlines()
    assert row.split() == [SHOWN, "b"]
    assert header.index("NEXT") == row.index("b", len(SHOWN))
    assert line.rstrip() == SHOWN
