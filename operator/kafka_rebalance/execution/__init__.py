"""Pure: steps, batches, gates, the throttle ledger; what to do next, given what was observed."""
