"""`python -m e2e.demo` runs the demo. With `KEEP=1` in the environment, or any argument, it is left running at the end.

The exit code is 0 if every check passed, 1 if one failed, 130 after Ctrl-C.
"""

import os
import signal
import sys
from types import FrameType

from e2e.demo.screen import Screen
from e2e.demo.stage import BYTES_PER_PARTITION, NAMESPACE, PARTITIONS_PER_TOPIC, TOPICS, Stage
from e2e.demo.story import RESOURCE, Story

_NEXT = """\
Everything stays as it is, with records flowing, until Ctrl-C. In another terminal:

export KUBECONFIG={kubeconfig}
export PATH={path}:$PATH
export BOOTSTRAP={bootstrap}

# empty broker 6, and follow it
kubectl apply -f {directory}/decommission.yaml
kafka-rebalance watch decommission-6 -n {namespace}

# in a third terminal, while it runs: faster, pause, go on, or cancel and go back
kubectl patch {resource} decommission-6 -n {namespace} --type merge \\
  -p '{{"spec":{{"throttle":{{"leaderRate":"100Mi","followerRate":"100Mi"}}}}}}'
kubectl patch {resource} decommission-6 -n {namespace} --type merge -p '{{"spec":{{"execution":{{"suspend":true}}}}}}'
kubectl patch {resource} decommission-6 -n {namespace} --type merge -p '{{"spec":{{"execution":{{"suspend":false}}}}}}'
kubectl delete {resource} decommission-6 -n {namespace}

# look closer
kubectl get {resource} -A
kubectl describe {resource} add-brokers -n {namespace}
kubectl get events -n {namespace}
kubectl explain {resource}.spec
kafka-rebalance pipeline sample --bootstrap-servers $BOOTSTRAP --lake {lake}
tail -f {log}
"""


def main() -> int:
    """Run the whole demo; returns its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    keep = os.environ.get("KEEP", "0") != "0" or bool(sys.argv[1:])
    screen = Screen()
    megabytes = TOPICS * PARTITIONS_PER_TOPIC * BYTES_PER_PARTITION // 1_000_000
    screen.section(
        "Real servers start",
        f"Six Kafka brokers in three racks: {TOPICS * PARTITIONS_PER_TOPIC} partitions with {megabytes} MB of records "
        "are on the first three,\nthe others are empty. Beside them a Kubernetes API server, and the operator as its "
        "users run it. Nothing is simulated.",
    )
    stage = Stage()
    try:
        _tell(stage, screen, keep=keep)
    except KeyboardInterrupt:
        screen.say("interrupted: everything is ended")
        return 130
    except Exception as error:  # noqa: BLE001 - after any error, the reader needs the path of the logs
        screen.check("the demo runs to its end", holds=False, otherwise=error)
        return 1
    finally:
        stage.close(keep_logs=bool(screen.failed))
        if screen.failed:
            screen.say(f"logs are in {stage.kafka.directory} and {stage.kube.directory}")
    return 1 if screen.failed else 0


def _tell(stage: Stage, screen: Screen, *, keep: bool) -> None:
    story = Story(stage, screen)
    stage.start(screen.say)
    stage.start_traffic()
    screen.say("two producers and two consumers run from now on; every record is counted")
    story.measure()
    story.undo(story.spread())
    screen.section("The end", "The producers stop, the consumers read the rest, and the records are counted.")
    story.account()
    screen.timings()
    if screen.failed:
        screen.say(f"{len(screen.failed)} checks FAILED: {'; '.join(screen.failed)}")
    else:
        screen.say("every check held")
    if keep:
        _keep(stage, story, screen)


def _keep(stage: Stage, story: Story, screen: Screen) -> None:
    """Wait for Ctrl-C; the records written meanwhile are verified too."""
    stage.start_traffic()
    screen.section("What to try next", "KEEP=1 was given.")
    environment = stage.environment()
    screen.output(
        _NEXT.format(
            kubeconfig=environment["KUBECONFIG"],
            path=stage.commands,
            bootstrap=stage.kafka.bootstrap_servers,
            directory=stage.directory,
            lake=stage.lake,
            log=stage.operator.log,
            namespace=NAMESPACE,
            resource=RESOURCE,
        )
    )
    try:
        signal.pause()
    except KeyboardInterrupt:
        story.account()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
