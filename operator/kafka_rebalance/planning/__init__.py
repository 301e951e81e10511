"""Pure: who shall hold which replica, with the fewest moves, and the proof of it."""
