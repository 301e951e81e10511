"""A terminal session, recorded from real programs and shown as an animated picture."""
