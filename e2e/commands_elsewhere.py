"""The commands of the documentation that `e2e/test_documented_commands.py` does not execute, and why."""

_HELM = "kafka-rebalance-operator charts/kafka-rebalance-operator -n kafka-rebalance"
_CHART = "tests/chart/test_install.py"
_LAKE = "--lake s3://bucket/lake"
_BROKERS = "--bootstrap-servers kafka-0:9092"
ELSEWHERE = {
    f"helm install {_HELM} --create-namespace --wait --set image.repository=REGISTRY/kafka-rebalance-operator": _CHART,
    "helm test kafka-rebalance-operator -n kafka-rebalance": _CHART,
    "helm uninstall kafka-rebalance-operator -n kafka-rebalance --wait": _CHART,
    "helm uninstall kafka-rebalance-operator -n kafka-rebalance": _CHART,
    "helm uninstall kafka-rebalance-operator -n kafka-rebalance --no-hooks": _CHART,
    "helm rollback kafka-rebalance-operator REVISION -n kafka-rebalance --wait": _CHART,
    f"helm upgrade {_HELM} --wait --reset-then-reuse-values": _CHART,
    f"helm upgrade {_HELM} --wait --reset-then-reuse-values --set uninstall.underWay=Leave": _CHART,
    f"helm upgrade {_HELM} --wait --reset-then-reuse-values --set report.enabled=true": _CHART,
    f"helm install {_HELM} --wait --set image.repository=REGISTRY/kafka-rebalance-operator"
    " --set watchNamespaces='{kafka,payments}' --set crds.enabled=false": _CHART,
    "kubectl apply -f -": "e2e/bench/kube.py",
    "kafka-rebalance approve add-brokers --records /var/lib/kafka-rebalance/add-brokers": (
        "tests/unit/cli/commands/test_run_command.py"
    ),
    "kafka-rebalance run --serve 8000": "e2e/test_run.py",
    f"kafka-rebalance pipeline sample {_BROKERS} {_LAKE} --interval 1m --count 60": "e2e/test_object_store.py",
    f"kafka-rebalance pipeline metrics {_BROKERS} {_LAKE} --prometheus http://prometheus:9090": (
        "e2e/test_prometheus.py"
    ),
    f"kafka-rebalance pipeline metrics {_BROKERS} {_LAKE} --prometheus https://prometheus:9090"
    " --token-file /etc/prometheus/token": "e2e/test_prometheus.py",
    f"kafka-rebalance pipeline load-model {_LAKE} --window 24h": "e2e/test_object_store.py",
    f"kafka-rebalance pipeline load-model {_LAKE}": "e2e/test_object_store.py",
    "kafka-rebalance pipeline load-model --lake LAKE --window 1h": "e2e/test_load_by_rates.py",
    "export AWS_ENDPOINT_URL=https://minio.storage:9000 AWS_REGION=us-east-1": "e2e/bench/s3_server.py",
    f"kafka-rebalance pipeline windows {_LAKE}": "e2e/test_object_store.py",
    f"kafka-rebalance pipeline windows {_LAKE} --window 24h": "e2e/test_object_store.py",
    f"kafka-rebalance pipeline windows {_LAKE} --stream": "e2e/test_object_store.py",
    f"kafka-rebalance pipeline quality {_LAKE}": "tests/unit/pipeline/test_quality.py",
    f"kafka-rebalance pipeline compact {_LAKE} --retention 14d": "tests/unit/cli/commands/test_pipeline_command.py",
    "kafka-rebalance pipeline history --lake LAKE": "tests/pipeline/test_history.py",
    "kafka-rebalance plan --cluster cluster.json --rebalance krb.yaml --durations lake/models/ID/durations.json"
    " --finish-within 8h": "tests/unit/cli/commands/test_plan_command_durations.py",
    "kafka-rebalance snapshot --command-config $cluster.properties -o snapshots/$cluster.json.gz": "e2e/test_cli.py",
    "kafka-rebalance pipeline fleet --snapshots snapshots --rebalance krb.yaml --plans plans": (
        "tests/pipeline/test_fleet.py"
    ),
    "kafka-rebalance pipeline fleet --snapshots DIR": "tests/pipeline/test_fleet.py",
    "kafka-rebalance status even-load -n kafka --load-model FILE": (
        "tests/unit/cli/commands/test_status_command_load_model.py"
    ),
}
"""Other tests execute these, or do the same with other arguments: they need servers or settings of their own."""

_MAKE = "a target of the Makefile"
_POD = "needs a Pod, and this API server has no kubelet"
NOT_EXECUTED = {
    "make install": _MAKE,
    "make demo-local": _MAKE,
    "make demo": _MAKE,
    "make demo KEEP=1": _MAKE,
    "make demo-load": _MAKE,
    "make test": _MAKE,
    "make e2e": _MAKE,
    "make e2e-node": _MAKE,
    "make contract-all": _MAKE,
    "make release": _MAKE,
    ".venv/bin/pytest tests/contract": "is a part of make test",
    "KAFKA_VERSION=3.9 .venv/bin/pytest tests/contract": "is a part of make contract-all",
    "source .venv/bin/activate": "the tests run in this environment",
    "pip install --group cli": "would change the environment of the tests",
    "pip install --no-deps .": "would change the environment of the tests",
    "pip install '.[pipeline]'": "would change the environment of the tests",
    "docker build --target operator -t REGISTRY/kafka-rebalance-operator:0.1.0 .": "needs Docker: e2e/node",
    "docker push REGISTRY/kafka-rebalance-operator:0.1.0": "needs a registry",
    "kubectl krew install --manifest=kafka-rebalance.yaml": "needs krew and published archives",
    "kubectl logs -n kafka-rebalance job/kafka-rebalance-operator-uninstall": _POD,
    "kubectl logs deploy/kafka-rebalance-operator -n kafka-rebalance | grep kafka_rebalance.audit": _POD,
    "kubectl port-forward -n kafka-rebalance deployment/kafka-rebalance-operator 8082": _POD,
    "kubectl edit": "is a name; opens an editor",
    "kubectl patch --field-manager=flux-client-side-apply": "lacks the patch, which is the reader's",
    "kubectl delete configmaps": "lacks the label, which the message of a resource has",
}
"""And why."""
