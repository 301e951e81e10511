"""Decides what to do next from what was observed: steps, limits, health gate, queue, throttle. Pure."""
