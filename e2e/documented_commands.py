"""The commands of the documentation, by the situation in which a reader uses them.

`e2e/test_documented_commands.py` executes them as they are written here, and `tests/docs/test_executed.py` compares
these tables and `e2e/commands_elsewhere.py` with the pages: a command that is in no table fails, and so does one that
no page shows any more.
"""

ABBREVIATIONS = {
    "-n NAMESPACE": "-n kafka",
    "-n NS": "-n kafka",
    "krb NAME": "krb add-brokers",
    "krt NAME": "krt limits",
    "freeze NAME": "freeze limits",
    "unfreeze NAME": "unfreeze limits",
    "status again": "status add-brokers",
    " NAME": " add-brokers",
    " RATE": " 5Mi",
    " UID": " 99a86ba3-7747-44f9-9be1-b65cc0e63358",
    "--records DIR": "--records /var/lib/kafka-rebalance/add-brokers",
    ".venv/bin/kafka-rebalance": "kafka-rebalance",
    "run add-brokers.yaml": "run examples/add-brokers.yaml",
}
"""What the pages leave to the reader, and the value of these tables."""

PLACEHOLDERS = (
    (r"kafka-0(\.kafka)?:9092(,kafka-1(\.kafka)?:9092)?", "{bootstrap}"),
    (r"(-n|namespace) kafka(?=\s|\)|$)", r"\1 {namespace}"),
    (r"kafka:wallboard", "{namespace}:wallboard"),
    (r"/namespaces/kafka/", "/namespaces/{namespace}/"),
    (r'"namespace": "kafka"', '"namespace": "{namespace}"'),
    (r"-n kafka-rebalance(?=\s|$)", "-n {records}"),
    (r"-namespace kafka-rebalance(?=\s|$)", "-namespace {records}"),
    (r"serviceaccount=kafka-rebalance:", "serviceaccount={records}:"),
    # An operator of a lane has its records in a namespace of the lane.
    (r"(kafka-rebalance (?:diff|history|undo|status|report add-brokers)) (?!.*--records)", r"\1 {of_records} "),
    (r"--connection prod ", "--connection production "),
    (r"krb/NAME", "{drained}"),
    (r"--serve 8000", "--serve {page_port}"),
    (r"127\.0\.0\.1:8082", "127.0.0.1:{report_port}"),
    (r"99a86ba3-7747-44f9-9be1-b65cc0e63358", "{uid}"),
    (r"/var/lib/kafka-rebalance/add-brokers", "records"),
)
"""The names in the documentation as regular expressions, and those of the test servers."""

LOCAL = (
    "kafka-rebalance plan --cluster examples/cluster.json",
    "kafka-rebalance report --cluster examples/cluster.json -o report.html",
    "source <(kafka-rebalance completion bash)",
    "kafka-rebalance explain --cluster examples/cluster.json --partition orders-2",
    "kafka-rebalance steps --current 1,2,3 --target 4,2,5",
    "kafka-rebalance steps --current 1,2,3 --target 4,2,5 --calls",
    "kafka-rebalance steps --current 0,3 --target 3,2",
    "kafka-rebalance steps --current 1,2,3 --target 4,5,6",
    "kafka-rebalance lint manifests/*.yaml",
    "kafka-rebalance lint examples/*.yaml",
)
"""In a clone, without servers."""

READING = (
    "kafka-rebalance doctor --bootstrap-servers kafka-0:9092",
    "kafka-rebalance doctor --bootstrap-servers kafka-0:9092 --throttles --no-operator",
    "kafka-rebalance doctor --bootstrap-servers kafka-0:9092 --cancel-wedged -o json",
    "kafka-rebalance snapshot --bootstrap-servers kafka-0:9092 -o cluster.json.gz",
    "kafka-rebalance snapshot --bootstrap-servers kafka-0:9092,kafka-1:9092 -o cluster.json",
    "kafka-rebalance snapshot --bootstrap-servers kafka-0:9092 -o cluster.json",
    "kafka-rebalance plan --cluster cluster.json -o json",
    "kafka-rebalance plan --cluster cluster.json --decommission 4 -o json > plan.json",
    "kafka-rebalance plan --cluster cluster.json --broker-list 1,2,3 -o json",
    "kafka-rebalance explain --cluster cluster.json",
    "kafka-rebalance report --cluster cluster.json -o plan.html",
    "kafka-rebalance plan --cluster cluster.json -o json > plan.json",
    "kafka-rebalance report --cluster cluster.json --plan plan.json -o plan.md",
    "kafka-rebalance lint first.yaml",
    "kafka-rebalance plan --cluster cluster.json --rebalance first.yaml",
)
"""On a Kafka cluster, which they leave as it is."""

RUN_FIRST = (
    "kafka-rebalance run first.yaml --records ./records",
    "kafka-rebalance report first --records ./records -o report.html",
    "kafka-rebalance run first.yaml --records ./records --rollback",
)
"""Without Kubernetes: the tutorial."""
RUN = "kafka-rebalance run examples/add-brokers.yaml --records /var/lib/kafka-rebalance/add-brokers"
DURING_RUN = (
    "kafka-rebalance throttle add-brokers --rate 20Mi --records /var/lib/kafka-rebalance/add-brokers",
    "kafka-rebalance report add-brokers --records /var/lib/kafka-rebalance/add-brokers -o run.html",
)
"""In a second terminal."""

SECRETS = (
    (
        "kubectl create secret generic kafka-login -n kafka --from-literal=username=rebalance"
        ' --from-literal=password="$PASSWORD"'
    ),
    (
        "kubectl create secret generic kafka-oauth -n kafka --from-literal=clientId=rebalance"
        ' --from-literal=clientSecret="$SECRET"'
    ),
)
INSTALL = (
    (
        "helm template kafka-rebalance-operator charts/kafka-rebalance-operator -n kafka-rebalance --no-hooks"
        " > operator.yaml"
    ),
    "kubectl create namespace kafka-rebalance",
    "kubectl apply --server-side -f operator.yaml",
    "kubectl apply --server-side -f crds/",
    "kubectl apply -f deploy/namespace.yaml",
    "kubectl apply -f deploy/",
)
"""Without Helm, on an API server of its own."""
OPERATOR = "kafka-rebalance operator --all-namespaces --own-namespace kafka-rebalance"
"""In the background."""
INSTALLED = (
    "kafka-rebalance check-install --all-namespaces --own-namespace kafka-rebalance",
    "kubectl get lease -n kafka-rebalance",
    "kubectl explain kafkarebalances.spec --api-version=kafkarebalance.dev/v1alpha1",
)
RETIRE = (
    "kafka-rebalance retire --all-namespaces --own-namespace kafka-rebalance --deployment kafka-rebalance-operator",
    "kafka-rebalance retire --all-namespaces --own-namespace kafka-rebalance --under-way leave",
)
"""When the operator is gone."""
FINALIZERS = (
    "kubectl get $kind.kafkarebalance.dev -A -o custom-columns=:metadata.namespace,:metadata.name --no-headers",
    (
        'kubectl patch $kind.kafkarebalance.dev "$name" -n "$namespace" --type merge'
        ' -p \'{"metadata":{"finalizers":null}}\''
    ),
)
"""They are executed as the loop that `docs/install.md` shows."""
REMOVE = "kubectl delete -f crds/"

STORES = (
    "keytool -list -rfc -keystore truststore.jks > ca.pem",
    "keytool -importkeystore -srckeystore keystore.jks -destkeystore keystore.p12 -deststoretype PKCS12",
    "openssl pkcs12 -in keystore.p12 -nodes -out client.pem",
)
"""With Java's stores of keys and certificates."""

ACLS = (
    (
        "kafka-acls.sh --bootstrap-server kafka-0:9092 --add --allow-principal User:kafka-rebalance"
        " --operation Alter --operation AlterConfigs --cluster"
    ),
    (
        "kafka-acls.sh --bootstrap-server kafka-0:9092 --add --allow-principal User:kafka-rebalance"
        " --operation Describe --operation AlterConfigs --topic '*'"
    ),
    (
        "kafka-acls.sh --bootstrap-server kafka-0:9092 --add --allow-principal User:kafka-sampler"
        " --operation Describe --cluster"
    ),
    (
        "kafka-acls.sh --bootstrap-server kafka-0:9092 --add --allow-principal User:kafka-sampler"
        " --operation Describe --operation DescribeConfigs --topic '*'"
    ),
    (
        "kafka-acls.sh --bootstrap-server kafka-0:9092 --add --allow-principal User:kafka-sampler"
        " --operation Describe --group '*'"
    ),
)
"""On brokers with an authorizer."""

CLEARING = (
    "kafka-rebalance doctor --bootstrap-servers kafka-0:9092 --clear-throttles --operator-namespace kafka-rebalance"
)

FIRST = (
    "kubectl apply -f first.yaml",
    "kafka-rebalance throttle first --rate 100Mi",
    "kafka-rebalance watch first",
    "kafka-rebalance report first -o first.html",
    "kafka-rebalance status first",
    "kafka-rebalance undo first",
)
"""The tutorial on Kubernetes. `watch` ends with the rebalance: the reader changes the throttle in a second terminal."""

APPLY = ("kubectl create namespace kafka", "kubectl apply -f examples/add-brokers.yaml")
LOOKING = (
    "kubectl get kafkarebalances.kafkarebalance.dev -n kafka",
    "kubectl get krb -A --field-selector spec.suspend=true",
    "kafka-rebalance status add-brokers -n kafka",
    "kafka-rebalance status add-brokers",
    "kafka-rebalance status add-brokers --batch",
    "kafka-rebalance status add-brokers -n kafka --batch",
    "kafka-rebalance status add-brokers --batch -o json",
    "kafka-rebalance top -A --once",
    "kafka-rebalance list -A",
    "kafka-rebalance diff add-brokers -n kafka",
    "kafka-rebalance report add-brokers -n kafka -o run.html",
)
"""While a rebalance runs."""
SERVE = "kafka-rebalance report add-brokers -n kafka --serve 8000"
LIVE_PAGE = (
    (
        "kubectl create clusterrole kafka-rebalance-reports --verb=create"
        " --resource=tokenreviews.authentication.k8s.io,subjectaccessreviews.authorization.k8s.io"
    ),
    (
        "kubectl create clusterrolebinding kafka-rebalance-reports --clusterrole=kafka-rebalance-reports"
        " --serviceaccount=kafka-rebalance:kafka-rebalance-operator"
    ),
    "kubectl create serviceaccount wallboard -n kafka",
    "kubectl create role wallboard -n kafka --verb=get --resource=kafkarebalances.kafkarebalance.dev",
    "kubectl create rolebinding wallboard -n kafka --role=wallboard --serviceaccount=kafka:wallboard",
    "kubectl create token wallboard -n kafka --audience kafka-rebalance-report",
)
TOKEN = "TOKEN=$(kubectl create token wallboard -n kafka)"
CURL = 'curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8082/namespaces/kafka/kafkarebalances/add-brokers'
CHANGING = (
    "kafka-rebalance suspend add-brokers -n kafka",
    'kubectl patch krb add-brokers -n kafka --type merge -p \'{"spec":{"execution":{"suspend":true}}}\'',
    "kafka-rebalance throttle add-brokers -n kafka --rate 5Mi",
    "kafka-rebalance throttle add-brokers --leader-rate 20Mi",
    "kafka-rebalance throttle add-brokers -n kafka --rate 5Mi --override --for 2h",
    'kafka-rebalance suspend add-brokers --override --for 2h --reason "disks of broker 4"',
    'kafka-rebalance suspend add-brokers -n kafka --override --for 2h --reason "disks of broker 4"',
    "kafka-rebalance freeze -n kafka",
    "kafka-rebalance freeze limits",
    "kafka-rebalance freeze -n kafka --override --for 30m",
    "kafka-rebalance throttle limits -n kafka --cluster-wide --rate 5Mi --override --for 2h",
    'kubectl patch krb add-brokers -n kafka --type merge -p \'{"spec":{"execution":{"parallelPartitionCount":200}}}\'',
    (
        "kubectl patch krb add-brokers -n kafka --type merge -p"
        ' \'{"spec":{"throttle":{"leaderRate":"100Mi","followerRate":"100Mi"}}}\''
    ),
    (
        "kubectl patch krb add-brokers -n kafka --type merge -p"
        ' \'{"spec":{"throttle":{"unlimited":true,"leaderRate":null,"followerRate":null}}}\''
    ),
    "kafka-rebalance throttle add-brokers -n kafka --rate 100Mi",
)
"""They suspend first, so that the new rates do not end the rebalance."""
GOING_ON = (
    "kafka-rebalance unfreeze limits",
    "kafka-rebalance resume add-brokers",
    "kafka-rebalance watch add-brokers -n kafka",
    "kubectl wait kafkarebalances.kafkarebalance.dev/add-brokers -n kafka --for=condition=Succeeded --timeout=2h",
)
FINISHED = (
    "kafka-rebalance history -A",
    "kafka-rebalance undo add-brokers --print",
    "kafka-rebalance undo add-brokers --print > back.json",
    "kafka-rebalance undo add-brokers -n kafka",
)
DELETED = (
    "kafka-rebalance undo --uid 99a86ba3-7747-44f9-9be1-b65cc0e63358 --print",
    "kafka-rebalance undo --uid 99a86ba3-7747-44f9-9be1-b65cc0e63358 --print > back.json",
)
GONE = "kafka-rebalance undo add-brokers"
"""Fails, and names the uid."""
BY_KAFKAS_TOOL = (
    "kafka-reassign-partitions.sh --bootstrap-server kafka-0:9092 --reassignment-json-file back.json"
    " --execute --throttle 50000000"
)

ENDING = (
    "kafka-rebalance cancel add-brokers -n kafka",
    "kafka-rebalance cancel add-brokers -n kafka --policy Revert",
    "kafka-rebalance cancel add-brokers -n kafka --policy Rollback",
    "kubectl delete krb add-brokers -n kafka",
    "kafka-rebalance cancel add-brokers -n kafka --policy Abandon",
)
"""Each ends a rebalance that runs."""
LET_GO = "kubectl annotate krb add-brokers -n kafka kafkarebalance.dev/let-go=true"

APPROVAL = ("kafka-rebalance approve add-brokers -n kafka", "kafka-rebalance approve add-brokers")

EXECUTE = (
    "kafka-rebalance execute --bootstrap-servers kafka-0:9092 --reassignment-json-file plan.json",
    (
        "kafka-rebalance execute --bootstrap-servers kafka-0:9092 --reassignment-json-file plan.json"
        " --throttle 50Mi -n kafka --apply"
    ),
    (
        "kafka-rebalance execute --bootstrap-servers kafka-0:9092 --reassignment-json-file plan.json"
        " --throttle 50Mi --apply"
    ),
)
VERIFY = "kafka-rebalance verify --bootstrap-servers kafka-0:9092 --reassignment-json-file plan.json"
DECOMMISSION = "kafka-rebalance execute --bootstrap-servers kafka-0:9092 --decommission-broker 4 -n kafka --apply"
DRAIN = (
    "kubectl get krc",
    (
        "kubectl patch krt limits -n kafka --type=merge -p"
        ' \'{"spec": {"kafka": {"bootstrapServers": null, "tls": null, "sasl": null,'
        ' "connectionRef": {"name": "production", "namespace": "kafka"}}}}\''
    ),
    "kubectl get krt",
    "kubectl wait krc/production -n kafka --for=condition=Ready",
    "kafka-rebalance drain 4 --connection prod -n kafka --apply",
    "kubectl wait krb/NAME -n kafka --for=condition=Drained --timeout=2h",
    "kafka-rebalance drain 4,5 --connection prod -n kafka --throttle 50Mi --apply",
)
"""With a KafkaConnection."""
