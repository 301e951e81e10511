"""Movement budgets: the best plan within so many moves or bytes."""
