"""Balance of each topic (PerTopic, Both)."""
