"""How often the throttle was undone, and how much of that is kept."""

from kafka_rebalance.reconcile.throttle.reverts import Reverts


class TestManyReverts:
    def test_a_server_that_undoes_everything_all_the_time_does_not_fill_the_memory(self):
        """Each round looks at all that is kept, so a growing list would block the event loop for seconds."""
        reverts = Reverts()
        for number in range(5000):
            reverts.note(number / 1000, f"topic t-{number}: 1 entries were removed")
        assert reverts.count == 5000
        assert len(reverts._latest) == 100
        assert "at least 100 times in 10 minutes, last topic t-4999" in reverts.contested(5.0)

    def test_old_ones_do_not_count(self):
        """However many there were."""
        reverts = Reverts()
        for number in range(5000):
            reverts.note(number / 1000, "broker 1: leader.replication.throttled.rate was deleted")
        assert reverts.contested(700.0) == ""
