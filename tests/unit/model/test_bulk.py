"""The garbage collector is off while a command builds its values, and restored afterwards."""

import gc

import pytest

from kafka_rebalance.model.bulk import without_collector


class TestWithoutCollector:
    def test_only_meanwhile(self) -> None:
        """Also if the work fails."""
        with without_collector():
            assert not gc.isenabled()
        assert gc.isenabled()
        with pytest.raises(ValueError, match="work"), without_collector():
            raise ValueError("work")
        assert gc.isenabled()

    def test_who_has_switched_it_off_keeps_it_off(self) -> None:
        gc.disable()
        try:
            with without_collector():
                pass
            assert not gc.isenabled()
        finally:
            gc.enable()
