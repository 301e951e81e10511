"""`python -m e2e.bench` fills the cache with what the bench needs: Kafka's jars, the Kubernetes programs and helm.

With the argument `kafka`, only Kafka's jars.

`make` runs it before the demo and the tests, so that the minutes it takes on a new machine are visible.
"""

import os
import sys

from e2e.bench.helm_build import helm_binary
from e2e.bench.kafka_jars import kafka_jars
from e2e.bench.kube_build import kube_binaries

kafka_jars()
if sys.argv[1:] != ["kafka"]:
    helm_binary()
    if (os.environ.get("E2E_PROVIDER") or "own") == "own":
        kube_binaries()
