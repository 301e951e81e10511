"""End-to-end tests and the demo: real brokers, a real API server, and the operator as users run it."""
