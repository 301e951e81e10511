"""Pure values: what a cluster looks like, what a plan says. No I/O, no clock, no decisions."""
