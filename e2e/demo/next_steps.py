"""The commands that the demo suggests at its end, with the names and addresses of its servers."""

_TEXT = """\
All servers keep running, and records are still produced, until Ctrl-C. In another terminal:

export KUBECONFIG={kubeconfig}
export PATH={path}:$PATH
export BOOTSTRAP={bootstrap}

# what emptying broker 6 would take, without doing it
kafka-rebalance snapshot --bootstrap-servers $BOOTSTRAP > {directory}/cluster.json
kafka-rebalance plan --cluster {directory}/cluster.json --decommission 6

# empty it, and follow it
kubectl apply -f {directory}/decommission.yaml
kafka-rebalance watch decommission-6 -n {namespace}

# in a third terminal, while it runs: what moves, faster, pause, go on, or cancel and go back
kafka-rebalance top -n {namespace} --once
kafka-rebalance throttle decommission-6 -n {namespace} --rate 100Mi
kafka-rebalance suspend decommission-6 -n {namespace}
kafka-rebalance resume decommission-6 -n {namespace}
kafka-rebalance cancel decommission-6 -n {namespace} --yes

# the same with kubectl
kubectl patch {resource} decommission-6 -n {namespace} --type merge \\
  -p '{{"spec":{{"throttle":{{"leaderRate":"100Mi","followerRate":"100Mi"}}}}}}'
kubectl patch {resource} decommission-6 -n {namespace} --type merge -p '{{"spec":{{"execution":{{"suspend":true}}}}}}'
kubectl patch {resource} decommission-6 -n {namespace} --type merge -p '{{"spec":{{"execution":{{"suspend":false}}}}}}'
kubectl delete {resource} decommission-6 -n {namespace}

# look closer
kafka-rebalance list -A
kafka-rebalance history -A
kafka-rebalance status even-load -n {namespace}
kafka-rebalance diff even-load -n {namespace}
kafka-rebalance report even-load -n {namespace} -o {directory}/report.html
kubectl describe {resource} add-brokers -n {namespace}
kubectl get events -n {namespace}
kubectl explain {resource}.spec
kafka-rebalance pipeline sample --bootstrap-servers $BOOTSTRAP --lake {lake}
tail -f {log}
"""


def next_steps(
    *, kubeconfig: str, path: str, bootstrap: str, directory: str, lake: str, log: str, namespace: str, resource: str
) -> str:
    """The text. ``path``: the directories of the commands; ``directory``: of the manifests."""
    return _TEXT.format(
        kubeconfig=kubeconfig,
        path=path,
        bootstrap=bootstrap,
        directory=directory,
        lake=lake,
        log=log,
        namespace=namespace,
        resource=resource,
    )
