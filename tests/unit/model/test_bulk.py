"""The garbage collector is off while a command builds its values, and restored afterwards."""

import gc
import pickle
from dataclasses import dataclass, field, replace

import pytest

from kafka_rebalance.model import bulk
from kafka_rebalance.model.bulk import (
    LARGE,
    collect_if_due,
    collect_rarely,
    kept_for_long,
    made_in_bulk,
    without_collector,
)


@made_in_bulk
@dataclass(frozen=True, slots=True, order=True)
class Quick:
    at: int
    names: list[str] = field(default_factory=list)
    size: int = 7
    more: str = ""


class TestMadeInBulk:
    def test_it_is_the_dataclass_that_it_was(self) -> None:
        one, other = Quick(1), Quick(1, [], 7, more="")
        assert (one.at, one.names, one.size, one.more) == (1, [], 7, "")
        assert one == other
        assert one.names is not other.names
        assert one < Quick(2)
        assert replace(one, more="x") == Quick(1, more="x")
        assert pickle.loads(pickle.dumps(one)) == one
        assert repr(one) == "Quick(at=1, names=[], size=7, more='')"
        assert not hasattr(one, "__dict__")

    def test_it_is_hashed_by_its_fields(self) -> None:
        assert hash(Quick(1, (), 2)) == hash(Quick(1, (), 2))  # type: ignore[arg-type]


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


class TestKeptForLong:
    @pytest.mark.parametrize(("values", "kept"), [(LARGE, True), (LARGE - 1, False)])
    def test_what_is_large_is_not_searched_again(self, values: int, kept: bool) -> None:
        """A search of millions of values stops all threads for a second."""
        before = gc.get_freeze_count()
        try:
            with kept_for_long(values):
                assert not gc.isenabled()
            assert (gc.get_freeze_count() > before) is kept
        finally:
            gc.unfreeze()


class TestCollectRarely:
    def test_the_young_values_are_searched_a_few_at_a_time(self) -> None:
        """The default is 700, and a quarter of everything leads to a search of everything."""
        thresholds = gc.get_threshold()
        try:
            collect_rarely()
            assert gc.get_threshold() == (20_000, 2, 100)
        finally:
            gc.set_threshold(*thresholds)


class TestCollectIfDue:
    def test_after_many_searches_of_young_values(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All values are searched then."""
        searched = []
        monkeypatch.setattr(gc, "collect", lambda: searched.append(True))
        for searches, due in ((bulk._DUE - 1, False), (bulk._DUE, True)):
            monkeypatch.setattr(gc, "get_count", lambda searches=searches: (0, 0, searches))
            collect_if_due()
            assert bool(searched) is due

    def test_not_while_the_collector_is_off(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A thread is making values then."""
        monkeypatch.setattr(gc, "collect", lambda: pytest.fail("it was off"))
        monkeypatch.setattr(gc, "get_count", lambda: (0, 0, bulk._DUE))
        with without_collector():
            collect_if_due()
