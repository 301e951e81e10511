"""Types what a user would type, and prints what the commands answer."""

import json
from typing import Any

from e2e.bench.waiting import wait_until
from e2e.demo.screen import Screen
from e2e.demo.stage import NAMESPACE, Stage

RESOURCE = "kafkarebalances.kafkarebalance.dev"


class Prompt:
    """The commands of the product and kubectl, on one stage."""

    def __init__(self, stage: Stage, screen: Screen) -> None:
        self._stage = stage
        self._screen = screen

    def tell(self, *command: str) -> None:
        """Run a command; print it and its output."""
        self._screen.command(" ".join(f"'{word}'" if " " in word or "{" in word else word for word in command))
        # kubectl prints "No resources found" to standard error; here it is a valid result.
        self._screen.output(self._stage.run(*command) or "(nothing)")

    def apply(self, example: str, **fields: str) -> None:
        """Apply `examples/<example>`, after setting the bootstrap servers and the given fields, and print it."""
        path = self._stage.fill_in(example, fields)
        changed = "".join(f" and {name}: {value}" for name, value in fields.items())
        self._screen.command(f"cat {example}   # examples/{example} with this cluster's bootstrap servers{changed}")
        self._screen.output(path.read_text())
        self.tell("kubectl", "apply", "-f", str(path))

    def sample(self, count: int, *, every: int) -> None:
        """Take `count` samples of the cluster, one every `every` seconds."""
        where = ("--bootstrap-servers", self._stage.kafka.address(1), "--lake", str(self._stage.lake))
        often = ("--interval", f"{every}s", "--count", str(count))
        self.tell("kafka-rebalance", "pipeline", "sample", *where, *often)

    def model(self, *options: str) -> None:
        """Compute the load model with Spark."""
        self.tell("kafka-rebalance", "pipeline", "load-model", "--lake", str(self._stage.lake), *options)

    def get(self) -> None:
        """List the KafkaRebalances."""
        self.tell("kubectl", "get", RESOURCE, "-A")

    def watch(self, name: str, until: int | None = None) -> None:
        """Follow a KafkaRebalance to its end, or until `until` percent are done."""
        stop = () if until is None else ("--until", str(until))
        command = ("kafka-rebalance", "watch", name, "-n", NAMESPACE, "--exit-on-stall", *stop)
        self._screen.command(" ".join(command))
        if not self._screen.plain:
            self._stage.run_visibly(*command)
            return
        for line in self._stage.run_tersely(*command):
            self._screen.output(line)

    def wait_state(self, name: str, wanted: str) -> None:
        """Wait until a KafkaRebalance is in this state; print each state on the way, with its message."""
        told: tuple[str, str] | None = None

        def there() -> bool:
            nonlocal told
            found = self._state(name)
            if found != told:
                self._screen.say(f"{name}: {': '.join(found)}")
                told = found
            return found[0] == wanted

        # The first plan by load on a machine compiles the search: a minute of CPU at most.
        wait_until(f"{name} is {wanted}", there, timeout=900, every=0.5)

    def resource(self, name: str) -> Any:
        """A KafkaRebalance, as parsed JSON."""
        return json.loads(self.found(name))

    def found(self, name: str) -> str:
        """A KafkaRebalance as JSON; empty if it does not exist."""
        return self._stage.run("kubectl", "get", RESOURCE, name, "-n", NAMESPACE, "--ignore-not-found", "-o", "json")

    def check_succeeded(self, name: str) -> Any:
        """Check that the resource reports success; returns its status."""
        status = self.resource(name)["status"]
        conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
        self._screen.check(
            "the resource says Succeeded", holds=conditions.get("Succeeded") == "True", otherwise=conditions
        )
        return status

    def _state(self, name: str) -> tuple[str, str]:
        """Reason and message of the condition Ready."""
        conditions = self.resource(name).get("status", {}).get("conditions", ())
        ready = next((row for row in conditions if row["type"] == "Ready"), None)
        return (ready["reason"], ready["message"]) if ready else ("Pending", "the operator has not seen it yet")
