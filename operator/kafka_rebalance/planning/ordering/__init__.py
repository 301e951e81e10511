"""The order within each replica list: leaders and followers."""
