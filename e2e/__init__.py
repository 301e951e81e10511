"""End-to-end tests and the demo: real brokers, a real API server, the operator as its users run it."""
