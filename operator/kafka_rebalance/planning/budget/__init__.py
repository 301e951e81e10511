"""Movement budgets: the best plan within a limit on moves or bytes."""
