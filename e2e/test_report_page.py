"""The page of a report in a real browser: small and large clusters, light and dark, without a network."""

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread

from e2e.bench.browser import Browser

pytestmark = pytest.mark.campaign

PROGRAM = str(Path(sys.executable).parent / "kafka-rebalance")
MOST_BYTES = 1_500_000


def cluster(brokers: int, partitions: int, *, new: int) -> dict[str, Any]:
    """A cluster to which ``new`` brokers were added; sizes differ by orders of magnitude."""
    chosen, racks = random.Random(7), 3 if brokers < 100 else 5
    old = range(brokers - new)
    return {
        "brokers": [{"id": n, "rack": f"rack-{n % racks}", "capacity": {"disk": "20Ti"}} for n in range(brokers)],
        "partitions": [
            {
                "topic": f"orders.region-{n // 50:04d}.events",
                "partition": n % 50,
                "replicas": chosen.sample(old, 3),
                "size": int(chosen.lognormvariate(20, 1.5)),
            }
            for n in range(partitions)
        ],
    }


def page_of(place: Path, brokers: int, partitions: int, new: int, *options: str) -> Path:
    """The page of the plan for such a cluster, written by the command."""
    (place / "cluster.json").write_text(json.dumps(cluster(brokers, partitions, new=new)))
    page = place / "report.html"
    command = [PROGRAM, "report", "--cluster", str(place / "cluster.json"), "-o", str(page), *options]
    subprocess.run(command, check=True, timeout=600)
    assert page.stat().st_size <= MOST_BYTES
    return page


def found(document: str) -> list[int]:
    """How many partitions are shown, and of how many."""
    text = re.search(r'id="found"[^>]*>([^<]*)<', document)
    assert text is not None
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", text[1])]


def names(document: str) -> list[str]:
    """The first column of the table of partitions."""
    body = re.search(r'<tbody id="rows">(.*?)</tbody>', document, re.DOTALL)
    assert body is not None
    return re.findall(r"<tr><td>([^<]*)</td>", body[1])


def opened(directory: Path, brokers: int, partitions: int, new: int) -> tuple[Path, Browser, str]:
    """The page of the plan, a browser, and the document that it shows without a search."""
    page, browser = page_of(directory, brokers, partitions, new), Browser(directory)
    return page, browser, browser.document(page)


class TestSmall:
    def test_search(self, tmp_path: Path) -> None:
        page, browser, everything = opened(tmp_path, 6, 120, 2)
        shown, total = found(everything)
        assert shown == total == len(names(everything)) > 50
        one = browser.document(page, "region-0001.events-7")
        assert {name.rpartition("-")[2][0] for name in names(one)} == {"7"} or names(one) == []
        gets = browser.document(page, "broker 5")
        assert 0 < found(gets)[1] < total
        assert all("copied to" in row for row in re.findall(r"<tr><td>orders.*?</tr>", gets))
        assert browser.console == ""

    def test_light_and_dark(self, tmp_path: Path) -> None:
        page = page_of(tmp_path, 6, 120, 2)
        light, dark = (
            imread(Browser(tmp_path, dark=dark).picture(page, f"{name}.png"))
            for name, dark in (("light", False), ("dark", True))
        )
        assert light[2, 2, :3].min() > 0.95
        assert dark[2, 2, :3].max() < 0.2
        for picture in (light, dark):
            blue = (picture[..., 2] > picture[..., 0] + 0.3) & (picture[..., 2] > 0.5)
            assert blue.mean() > 0.01  # the columns of the brokers


class TestLarge:
    def test_a_thousand_brokers_and_a_hundred_thousand_partitions(self, tmp_path: Path) -> None:
        """Below 1.5 MB, and the browser shows the largest copies first."""
        page, browser, document = opened(tmp_path, 1000, 100_000, 100)
        shown, total = found(document)
        assert shown == 200 == len(names(document))
        assert total > 20_000
        assert browser.console == ""
        assert imread(browser.picture(page, "large.png")).std() > 0.05

    def test_every_partition_gets_other_replicas(self, tmp_path: Path) -> None:
        """Kafka's own assignment moves more partitions than fit, so the page says how many it shows."""
        page = page_of(tmp_path, 1000, 100_000, 100, "--strategy", "Generate")
        document = Browser(tmp_path).document(page)
        _, total = found(document)
        assert 20_000 < total < 100_000
        assert "those with the largest copies" in document
