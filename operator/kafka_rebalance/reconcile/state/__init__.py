"""What is known about one rebalance."""
