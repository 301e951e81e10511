"""Makes the files of a release from one commit. `python -m release --help` has the options."""
