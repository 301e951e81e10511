"""What all demos have in common: how they start and end, and what a failure or Ctrl-C leaves."""

import signal
from collections.abc import Callable
from types import FrameType

from e2e.demo.broker_stage import BrokerStage
from e2e.demo.screen import Screen


def run(stage: BrokerStage, screen: Screen, tell: Callable[[], None]) -> int:
    """Start the servers and the traffic, run `tell`, and end everything; returns the exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        stage.start(screen.say)
        stage.start_traffic()
        screen.say("two producers and two consumers run from now on; every record is counted")
        tell()
    except KeyboardInterrupt:
        screen.say("interrupted: everything is ended")
        return 130
    except Exception as error:  # noqa: BLE001 - after any error the reader needs to know where the logs are
        screen.check("the demo runs to its end", holds=False, otherwise=error)
        return 1
    finally:
        stage.close(keep_logs=bool(screen.failed))
        if screen.failed:
            screen.say(f"logs are in {' and '.join(map(str, stage.logs))}")
    return 1 if screen.failed else 0


def end(stage: BrokerStage, screen: Screen) -> None:
    """Count the records, and print the times and the result of all checks."""
    screen.section("The end", "The producers stop, the consumers read the rest, and the records are counted.")
    account(stage, screen)
    screen.timings()
    if screen.failed:
        screen.say(f"{len(screen.failed)} checks FAILED: {'; '.join(screen.failed)}")
    else:
        screen.say("every check held")


def account(stage: BrokerStage, screen: Screen) -> None:
    """Stop the traffic, and report the outcome of the records that were written and read all the time."""
    for number, report in enumerate(stage.stop_traffic(), 1):
        screen.check(
            f"producer and consumer {number}: {report.acknowledged} records acknowledged, "
            f"{report.consumed} read back, {report.lost} lost, {report.duplicated} twice",
            holds=report.clean,
            otherwise=report,
        )


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
