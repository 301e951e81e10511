"""The report of a rebalance for people: a self-contained HTML page, or Markdown. Pure, except for the templates."""
