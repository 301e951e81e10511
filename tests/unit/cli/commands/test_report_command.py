"""kafka-rebalance report: where the figures come from, and what is refused."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.whole_program import run_program
from tests.unit.cli.commands.resource_runs import ENDED, WAITING, body, plan, program, status, world
from tests.unit.cli.commands.status_runs import NOW, UID, open_run_of, tp
from tests.unit.report.report_values import LOAD, record

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.cli.commands import reported_plans
from kafka_rebalance.cli.options.resource_lookup import stores
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.directory_objects import DirectoryObjects
from kafka_rebalance.kube.record_files import RecordFiles
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.topology import replicas_of
from kafka_rebalance.storage.locations import open_location
from kafka_rebalance.storage.run_history import write_run

PLAN = Plan(
    (PlannedPartition(tp(1), replicas_of(1, 2), replicas_of(3, 2), size_bytes=1 << 20),),
    Certificate(1, optimal=True),
)
EXAMPLE = str(Path(__file__).parents[4] / "examples" / "cluster.json")
CLUSTER = {
    "brokers": [{"id": n, "rack": "ab"[n % 2]} for n in (1, 2, 3, 4)],
    "partitions": [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "size": 1 << 20},
        {"topic": "t", "partition": 1, "replicas": [1, 2], "size": 1 << 20},
    ],
}


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(CLUSTER))
    return str(path)


@pytest.fixture
def written(tmp_path):
    """Runs the program with -o; returns the page."""

    def write(run, suffix=".md"):
        page = tmp_path / f"report{suffix}"
        done = run("-o", str(page))
        assert (done.code, done.out) == (0, ""), done
        return page.read_text(encoding="utf-8")

    return write


class TestPlans:
    def test_made_now(self, cluster, written):
        """With the options of `plan`, and the explanation."""
        page = written(lambda *more: run_program("report", "--cluster", cluster, *more))
        assert "proved: no plan that balances as well needs fewer" in page
        assert "| 4 | a | 0 → 1 |" in page
        assert "## Why" in page
        assert "## Balance against moves" in page

    def test_by_load(self, cluster, written, monkeypatch):
        """With the use of each broker, which the planner has computed."""
        make_plan = reported_plans.make_plan
        monkeypatch.setattr(reported_plans, "make_plan", lambda request: replace(make_plan(request), load=LOAD))
        page = written(lambda *more: run_program("report", "--cluster", cluster, *more), ".html")
        assert "180% of its share before, 140% after" in page
        assert "<h3>BytesIn, as the plan predicts</h3>" in page

    @pytest.mark.parametrize("given", [(), ("--decommission", "3")])
    def test_from_a_file(self, cluster, written, tmp_path, given):
        """What `plan -o json` has written: the same hash, and what it has proved."""
        made = run_program("plan", "--cluster", cluster, *given, "-o", "json").out
        (tmp_path / "plan.json").write_text(made)
        arguments = ("report", "--cluster", cluster, "--plan", str(tmp_path / "plan.json"))
        page = written(lambda *more: run_program(*arguments, *more))
        assert json.loads(made)["summary"]["hash"] in page
        assert "another state of the cluster" not in page
        assert "proved: no plan" in page

    @pytest.mark.parametrize(
        "summary",
        [{"before": {}}, {"lowerBound": "x"}, {"lowerBound": 1e400}, {"imbalance": {"squares": []}}, {"warnings": 5}],
    )
    def test_a_summary_of_others(self, tmp_path, summary):
        """Wrong usage, without a traceback."""
        (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
        (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [], "summary": summary}))
        files = ("--cluster", str(tmp_path / "cluster.json"), "--plan", str(tmp_path / "plan.json"))
        done = run_program("report", *files, "-o", str(tmp_path / "r.md"))
        assert (done.code, "summary: it is not that of a plan" in done.err) == (2, True)

    def test_a_budget_of_a_plan_file(self, written, tmp_path):
        """The file says that a movement budget limits the plan."""
        made = run_program("plan", "--cluster", EXAMPLE, "--max-replica-moves", "4", "-o", "json").out
        (tmp_path / "plan.json").write_text(made)
        arguments = ("report", "--cluster", EXAMPLE, "--plan", str(tmp_path / "plan.json"))
        assert "no plan within the movement budget balances better" in written(
            lambda *more: run_program(*arguments, *more)
        )

    def test_a_hash_that_is_none(self, written, tmp_path):
        """A plan file of others may have any text in its summary."""
        made = json.loads(run_program("plan", "--cluster", EXAMPLE, "-o", "json").out)
        made["summary"]["hash"] = "`![x](y)"
        (tmp_path / "plan.json").write_text(json.dumps(made))
        arguments = ("report", "--cluster", EXAMPLE, "--plan", str(tmp_path / "plan.json"))
        page = written(lambda *more: run_program(*arguments, *more))
        assert "| The file was planned for another state of the cluster | \\`!\\[x\\](y) |" in page

    def test_of_another_cluster(self, cluster, tmp_path):
        rows = [{"topic": "gone", "partition": 0, "replicas": [1]}]
        (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": rows}))
        page = str(tmp_path / "r.md")
        done = run_program("report", "--cluster", cluster, "--plan", str(tmp_path / "plan.json"), "-o", page)
        assert done.code == 3
        assert "the plan names gone-0" in done.err

    def test_the_example(self, written):
        """The page of the cluster file in the examples."""
        page = written(lambda *more: run_program("report", "--cluster", EXAMPLE, *more), ".html")
        assert page.startswith("<!doctype html>")


class TestResources:
    @pytest.fixture
    def kube(self):
        kube = world(body({}, status(WAITING, plan(PLAN.hash))))
        asyncio.run(stores(kube).plans.save(UID, PLAN.hash, "c", PLAN, NOW))
        return kube

    def test_waiting_for_approval(self, kube, written):
        """The plan, and the command that approves it."""
        page = written(lambda *more: program(kube, "report", "r", *more))
        assert page.startswith("# KafkaRebalance kafka/r\n\n**AwaitingApproval**")
        assert "kafka-rebalance approve r -n kafka" in page
        assert "Only the partitions that change are counted." in page
        assert "| t-1 | 1, 2 | 3, 2 | 1.0 MiB |" in page

    def test_by_load(self, written):
        """The stored plan has what it does to the load."""
        by_load = replace(PLAN, load=LOAD)
        kube = world(body({}, status(WAITING, plan(by_load.hash))))
        asyncio.run(stores(kube).plans.save(UID, by_load.hash, "c", by_load, NOW))
        page = written(lambda *more: program(kube, "report", "r", *more), ".html")
        assert "Broker 1 stays above the band of BytesIn: PartitionTooLarge." in page
        assert "<h3>BytesIn, as the plan predicts</h3>" in page

    def test_with_the_cluster(self, kube, cluster, written):
        """A snapshot adds what does not move, and the racks."""
        page = written(lambda *more: program(kube, "report", "r", "--cluster", cluster, *more))
        assert "| 1 | b | 2 → 1 |" in page
        assert "| 4 | a | 0 |" in page

    def test_without_the_right_to_the_records(self, kube, written):
        """The brokers are in the status."""

        async def refused(_name):
            raise Forbidden("configmaps is forbidden")

        kube.get_config_map = refused
        page = written(lambda *more: program(kube, "report", "r", *more))
        assert "| 3 |" in page
        assert "## Partitions" not in page

    def test_with_its_steps(self, written, tmp_path):
        """From the lake, of this very run."""
        ended = body({}, status(ENDED, plan(PLAN.hash)))
        kube = world(ended)
        run = open_run_of(ended, PLAN.hash, closed_at=NOW)
        asyncio.run(stores(kube).plans.save(UID, PLAN.hash, "c", PLAN, NOW))
        asyncio.run(stores(kube).runs.save(run))
        location = open_location(str(tmp_path / "lake"))
        steps = replace(record(), cluster_id=run.cluster_id, run_id=run.run_id)
        write_run(location, replace(steps, run_id="another"))
        write_run(location, steps)
        arguments = ("report", "r", "--history", str(tmp_path / "lake"))
        page = written(lambda *more: program(kube, *arguments, *more), ".html")
        assert "kafka-rebalance undo r -n kafka" in page

    def test_of_a_run_without_kubernetes(self, written, tmp_path):
        """The command to paste works on the same directory; one of the API server would find nothing."""
        directory = tmp_path / "records of r"

        async def succeed():
            kube = DirectoryObjects(RecordFiles.to_write(directory), lambda: NOW)
            await kube.apply(REBALANCES, body())
            await kube.patch_status(REBALANCES, "kafka", "r", {"status": status(ENDED, plan(PLAN.hash))})
            await kube.close()

        asyncio.run(succeed())
        page = written(lambda *more: run_program("report", "r", "-n", "kafka", "--records", str(directory), *more))
        assert f"kafka-rebalance undo r -n kafka --records '{directory}'" in page


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), "give the NAME of a KafkaRebalance, or a --cluster file"),
            (("r", "--strategy", "Generate"), "the options of `plan` are only for a plan that is made now"),
            (("r", "--plan", __file__), "give NAME or --plan"),
        ],
    )
    def test_contradictions(self, arguments, message, tmp_path):
        done = run_program("report", *arguments, "-o", str(tmp_path / "r.html"))
        assert done.code == 2
        assert message in " ".join(done.err.split())

    def test_the_kind_of_page_is_in_its_name(self, tmp_path):
        done = run_program("report", "r", "-o", str(tmp_path / "r.pdf"))
        assert done.code == 2
        assert "the name ends with .html or .md" in done.err
