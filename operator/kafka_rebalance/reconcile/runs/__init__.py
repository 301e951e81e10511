"""Opening runs: planning and storing the plan."""
