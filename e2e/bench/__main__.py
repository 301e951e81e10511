"""`python -m e2e.bench` puts into the cache what the bench starts from: Kafka's jars, Kubernetes' programs and helm.

`make` runs it before the demo and the tests, so that what takes minutes on a new machine is seen to do so.
"""

import os

from e2e.bench.helm_build import helm_binary
from e2e.bench.kafka_jars import kafka_jars
from e2e.bench.kube_build import kube_binaries

kafka_jars()
helm_binary()
if (os.environ.get("E2E_PROVIDER") or "own") == "own":
    kube_binaries()
