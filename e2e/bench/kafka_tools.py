"""Runs Kafka's own command-line tools in one Java process: starting the JVM costs more than the tools do."""

import hashlib
import struct
import subprocess
import threading
from pathlib import Path

from e2e.bench.cache import cached
from e2e.bench.kafka_jars import KafkaJars

_SOURCE = Path(__file__).with_name("KafkaTools.java")


class KafkaTools:
    """The process starts with the first tool and ends with `close`, or with this process because its stdin closes."""

    def __init__(self, jars: KafkaJars) -> None:
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def run(self, main: str, *arguments: str, timeout: float) -> str:
        """The standard output of class `main`. RuntimeError with all its output if it fails or times out."""
        with self._turn:
            code, out, err = self._ask((main, *arguments), timeout)
        if code:
            raise RuntimeError(f"{main} {' '.join(arguments)} failed:\n{out}{err}")
        return out

    def close(self) -> None:
        """Stop the process if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, words: tuple[str, ...], timeout: float) -> tuple[int, str, str]:
        process = self._process = self._process or self._start()
        texts = [word.encode() for word in words]
        order = struct.pack(">i", len(texts)) + b"".join(struct.pack(">i", len(text)) + text for text in texts)
        limit = threading.Timer(timeout, process.kill)
        limit.start()
        try:
            assert process.stdin is not None
            process.stdin.write(order)
            process.stdin.flush()
            return self._number(process), self._text(process), self._text(process)
        except (OSError, EOFError) as lost:
            self.close()
            raise RuntimeError(f"{' '.join(words)} did not answer within {timeout:.0f} s, or ended Java") from lost
        except BaseException:
            self.close()  # a late answer must not be taken for the answer to the next request
            raise
        finally:
            limit.cancel()

    def _start(self) -> subprocess.Popen[bytes]:
        entry = f"kafka/tools-{self._jars.version}-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]}"
        jar = cached(entry, self._compile) / "tools.jar"
        argv = self._jars.java("KafkaTools", role="tool", beside=jar)
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def _compile(self, place: Path) -> None:
        classes = place / "classes"
        subprocess.run(["javac", "-d", classes, "-cp", f"{self._jars.libs}/*", _SOURCE], check=True)
        subprocess.run(["jar", "--create", "--file", place / "tools.jar", "-C", classes, "."], check=True)

    def _number(self, process: subprocess.Popen[bytes]) -> int:
        (number,) = struct.unpack(">i", self._bytes(process, 4))
        return int(number)

    def _text(self, process: subprocess.Popen[bytes]) -> str:
        return self._bytes(process, self._number(process)).decode()

    def _bytes(self, process: subprocess.Popen[bytes], count: int) -> bytes:
        assert process.stdout is not None
        found = process.stdout.read(count)
        if len(found) < count:
            raise EOFError
        return found
