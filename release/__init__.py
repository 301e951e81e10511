"""What a release consists of, made by one command from one commit. `python -m release --help` has the options."""
