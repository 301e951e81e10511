"""Declares walks: functions that lead the rebalance ``r`` of an operator through states of the state table."""

from kafka_rebalance.reasons import Reason


def declares(walks):
    """A decorator that adds a walk to ``walks``: by its name, the states that it shows, and the walk."""

    def walk(*states):
        """Declare the states that the statuses of the rebalance ``r`` show, in order."""

        def declare(walked):
            walks[walked.__name__] = ([Reason(state) for state in states], walked)
            return walked

        return declare

    return walk
