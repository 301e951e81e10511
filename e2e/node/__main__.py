"""`python -m e2e.node` fills the cache with what a node needs, or reports why no node can run on this machine.

`make` runs it before the tests, so that the minutes it takes on a new machine are visible.
"""

import sys

from e2e.bench.kube_build import node_binaries
from e2e.node.provider import check, own

try:
    check()
except RuntimeError as error:
    sys.exit(str(error))
if own():
    node_binaries()
