"""The exit codes of the program, beside 0 (done) and click's 2 (wrong usage)."""

EXIT_FAILED = 1
EXIT_REFUSED = 3
EXIT_NO = 4
"""The command could look, and the answer is no: not done yet, a problem was found, a check has failed."""
