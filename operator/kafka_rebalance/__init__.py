"""Moves Kafka partition replicas to where they should be: fewest moves, small steps, throttled, undoable."""
