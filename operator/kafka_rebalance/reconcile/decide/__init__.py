"""Decisions of a round. Pure."""
