"""Strategies other than MinimalMovement."""
