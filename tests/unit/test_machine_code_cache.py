"""Which machine code a process uses again."""

import errno
import importlib.util
import itertools
from pathlib import Path
from typing import Any, NoReturn

import numba
import pytest

from kafka_rebalance import machine_code_cache

NUMBER = itertools.count()


def twice(folder: Path) -> Any:
    """A compiled function of a file, as a new process has it."""
    file = folder / "doubling.py"
    file.write_text(
        "from kafka_rebalance.planning.load.compiled import compiled\n"
        "@compiled\n"
        "def twice(x: int) -> int:\n"
        "    return 2 * x\n"
    )
    spec = importlib.util.spec_from_file_location(f"doubling_{next(NUMBER)}", file)
    assert spec is not None
    assert spec.loader is not None
    machine_code_cache.content_hash.cache_clear()
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.twice
    assert found(21) == 42
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a directory for machine code in it."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "code"))
    return tmp_path


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be written in any directory for machine code."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(machine_code_cache.tempfile, "TemporaryFile", refuse)


class TestCache:
    def test_the_next_process_does_not_compile(self, folder: Path) -> None:
        """The code is there before the first call."""
        assert not twice(folder).stats.cache_hits
        assert twice(folder).stats.cache_hits

    def test_a_directory_that_cannot_be_written_is_read(self, folder: Path, request: pytest.FixtureRequest) -> None:
        """As in an image that was filled when it was built."""
        twice(folder)
        request.getfixturevalue("read_only")
        assert twice(folder).stats.cache_hits

    def test_code_of_other_functions_is_not_used(self, folder: Path) -> None:
        """numba itself would: it looks only at the file of a function, not at those of the functions that it calls."""
        twice(folder)
        (folder / "called.py").write_text("CHANGED = True")
        assert not twice(folder).stats.cache_hits

    @pytest.mark.usefixtures("read_only")
    def test_without_a_directory_each_process_compiles(self, folder: Path) -> None:
        """And no file is written."""
        for _ in range(2):
            assert not twice(folder).stats.cache_hits
        assert not list(folder.rglob("*.nb?"))
