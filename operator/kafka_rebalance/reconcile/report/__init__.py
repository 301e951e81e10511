"""What the status says. Pure."""
