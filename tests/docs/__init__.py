"""The documentation: every command and manifest in it is valid, and the site builds without a broken link."""
