"""Baseline planners for comparison. Each is ``plan(cluster)`` and returns the replica lists [N] after the plan."""
