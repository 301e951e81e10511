"""A package, so that its cluster stops after its last test instead of at the end of the session."""
