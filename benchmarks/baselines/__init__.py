"""Other ways of planning the same clusters, to compare with. Each is ``plan(cluster)``: the lists [N] after it."""
