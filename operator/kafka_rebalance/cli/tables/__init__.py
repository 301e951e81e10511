"""Tables and phrases for the terminal."""
