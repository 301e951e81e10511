"""The rollback of a rebalance from a file without Kubernetes: from a rest point, after success, and by undo."""

import asyncio
import json

import pytest
from tests.fakes.whole_program import run_program
from tests.unit.app.local_terminal import BEFORE, ONE_AT_A_TIME

from kafka_rebalance.app.local_order import LocalOrder
from kafka_rebalance.app.local_run import End
from kafka_rebalance.kube.merge_patch import merge_patch


class TestRollback:
    async def test_from_a_rest_point(self, terminal, kafka):
        await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        ended = await terminal.run(back=True)
        assert ended.end is End.DONE
        assert (kafka.lists("t"), kafka.values) == (BEFORE, {})

    async def test_after_success(self, terminal, kafka):
        """And the directory is as before the first start: the same file may be run again."""
        await terminal.run()
        assert (await terminal.run(back=True)).message.startswith("rolled back")
        assert (kafka.lists("t"), kafka.values) == (BEFORE, {})
        assert (await terminal.run(back=True)).message == "nothing to roll back"
        assert (await terminal.run()).end is End.DONE
        assert terminal.moved == 4

    @pytest.mark.parametrize(("after_success", "state"), [(False, "RolledBack"), (True, "Undone")])
    async def test_what_can_be_read_afterwards(self, terminal, kafka, tmp_path, after_success, state):
        """The commands show what was rolled back, and when, until another run of that name has ended."""

        async def said(*arguments):
            done = await asyncio.to_thread(run_program, *arguments, "--records", str(terminal.directory))
            assert done.code == 0, done
            return done

        await terminal.run(stops=None if after_success else lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        await terminal.run(back=True)
        lines = (await said("status", "r")).out.splitlines()
        assert lines[0] == f"default/r: {state}"
        assert "deletionPolicy Rollback" in lines[2]
        (row,) = json.loads((await said("history", "-o", "json")).out)["runs"]
        assert (row["name"], row["outcome"]) == ("r", state)
        assert row["startedAt"] <= row["completedAt"]
        page = tmp_path / "report.md"
        done = await said("report", "r", "-o", str(page))
        assert "the plan of a run that was rolled back is not kept" in done.err
        assert page.read_text().startswith(f"# KafkaRebalance default/r\n\n**{state}**")
        assert "| 3 |" in page.read_text()
        await terminal.run()
        assert (await said("status", "r")).out.startswith("default/r: Succeeded")
        assert len(json.loads((await said("history", "-o", "json")).out)["runs"]) == 2

    async def test_by_undo(self, terminal, kafka):
        """The next start executes the undo, with any options. A second request changes nothing."""

        async def undo(*arguments):
            where = ("--records", str(terminal.directory), "-y")
            return await asyncio.to_thread(run_program, "undo", "r", *where, *arguments)

        await terminal.run()
        done = await undo()
        assert done.code == 0, done
        assert "return to their original replicas" in done.out
        assert "kafka-rebalance run carries it out" in done.out
        assert "refused (AlreadyAsked)" in (await undo()).err
        assert terminal.moved == 4
        assert (await terminal.run()).message.startswith("rolled back")
        assert (kafka.lists("t"), kafka.values) == (BEFORE, {})

    async def test_by_undo_of_an_unfinished_run(self, terminal, kafka):
        """It names the commands that roll that back."""
        await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        done = await asyncio.to_thread(run_program, "undo", "r", "--records", str(terminal.directory), "-y")
        assert "refused (Running)" in done.err
        assert "kafka-rebalance cancel" in done.err

    async def test_with_an_edited_file(self, terminal, kafka):
        """What is planned stays as it was carried out; the rest of the file counts."""
        await terminal.run()
        await terminal.run(back=True, brokers={"decommission": [1]}, **ONE_AT_A_TIME)
        assert kafka.lists("t") == BEFORE

    @pytest.mark.parametrize("after_success", [False, True])
    async def test_ended_at_once_goes_on_with_any_command(self, terminal, kafka, after_success):
        """A rollback cannot be taken back: the next start ends it, also without --rollback."""
        if after_success:
            await terminal.run()
        else:
            await terminal.run(stops=lambda _: bool(kafka.altered), **ONE_AT_A_TIME)
        kafka.slow = {1, 2}
        with pytest.raises(asyncio.CancelledError):
            await terminal.run(back=True, cuts=lambda _: bool(kafka.flying))
        kafka.arrive()
        assert (await terminal.run()).message.startswith("rolled back")
        assert (kafka.lists("t"), kafka.values) == (BEFORE, {})

    async def test_ended_at_once_is_not_given_up_by_the_policy_of_the_file(self, terminal, kafka):
        """That is for `cancel`: --rollback has ordered more, also for the next start without it."""
        spec = {**ONE_AT_A_TIME, "deletionPolicy": "Abandon"}
        await terminal.run(stops=lambda _: kafka.lists("t") != BEFORE, **spec)
        kafka.slow = {1, 2}
        with pytest.raises(asyncio.CancelledError):
            await terminal.run(back=True, cuts=lambda _: bool(kafka.flying), **spec)
        kafka.arrive()
        assert (await terminal.run(**spec)).message.startswith("rolled back")
        assert (kafka.lists("t"), kafka.values) == (BEFORE, {})

    def test_the_order_is_over_when_the_file_is_carried_out_again(self):
        """After an undo that could not restore everything, for example: a later `cancel` follows the file again."""
        wanted = {"metadata": {"annotations": {}}, "spec": {"deletionPolicy": "Abandon"}}
        ordered = LocalOrder(back=True).manifest(wanted, {"metadata": {}, "spec": {}})
        assert ordered["spec"]["deletionPolicy"] == "Rollback"
        again = LocalOrder().manifest(wanted, ordered)
        assert again["spec"]["deletionPolicy"] == "Abandon"
        assert merge_patch(ordered, again) == wanted

    async def test_stops_at_a_rest_point_too(self, terminal, kafka):
        await terminal.run()
        moved = len(kafka.altered)
        ended = await terminal.run(back=True, stops=lambda _: len(kafka.altered) > moved, **ONE_AT_A_TIME)
        assert ended.end is End.AT_REST
        assert kafka.lists("t") != BEFORE
        assert (await terminal.run(back=True)).end is End.DONE
        assert kafka.lists("t") == BEFORE

    async def test_of_nothing(self, terminal, kafka):
        assert (await terminal.run(back=True)).message == "nothing to roll back"
        assert kafka.altered == []
