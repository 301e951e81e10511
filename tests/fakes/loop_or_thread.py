"""Tells whether code runs in the event loop or in a thread beside it."""

import threading

IN_THE_LOOP, OFF_THE_LOOP = "in the event loop", "off the event loop"


def where():
    """Which of the two this runs in."""
    return IN_THE_LOOP if threading.current_thread() is threading.main_thread() else OFF_THE_LOOP
