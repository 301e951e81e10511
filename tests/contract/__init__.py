"""A package, so that its cluster ends with its last test and not with the whole session."""
