"""`python -m e2e.node` puts into the cache what a node starts from, or says why there can be none here.

`make` runs it before the tests, so that what takes minutes on a new machine is seen to do so.
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
