"""The pages: self-contained, escaped, and the same figures in HTML and Markdown.

`e2e/test_report_page.py` opens the web page in a browser.
"""

import re
from dataclasses import replace

import pytest
from tests.unit.report.random_rows import random_rows
from tests.unit.report.report_values import BROKERS, NOW, PLAN, ROWS, course, record, report

from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.report import pages
from kafka_rebalance.report.pages import html_page, markdown_page
from kafka_rebalance.report.report_contents import BalancePoint, Conditioned, Fact, PartitionRow

CURVE = [BalancePoint(0, 0, 4, 0), BalancePoint(2, 2, 2, 6 << 20)]


class TestHtml:
    def test_no_request_leaves_it(self):
        """No address, no import, no font or picture from elsewhere; a policy forbids what might be overlooked."""
        page = html_page(report(course=course(record=record()), curve=CURVE))
        assert not re.search(r"https?://|\bsrc=|url\(|@import|<link|fetch\(|XMLHttp", page)
        assert "default-src 'none'" in page

    def test_names_of_topics_are_text(self):
        """Kafka allows few characters, but a page must not depend on that."""
        page = html_page(report(course=course(), title="<script>alert(1)</script>"))
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert(1)" in page
        assert "waits for &lt;orders-1&gt;" in page

    def test_of_a_plan(self):
        """What is not known of a plan that nobody has begun is not there."""
        page = html_page(report(curve=CURVE))
        for heading in ("Before and after", "Copies between brokers", "Balance against moves", "Why", "Partitions"):
            assert f"<h2>{heading}</h2>" in page
        assert "<h2>Conditions</h2>" not in page
        assert "2 replicas share a rack." in page
        assert PLAN.hash in page

    def test_of_a_run(self):
        page = html_page(report(course=course(record=record()), command="kafka-rebalance approve r -n kafka"))
        for heading in ("Next", "Progress of the run", "In flight", "Skipped partitions", "Conditions"):
            assert f"<h2>{heading}</h2>" in page
        assert "3 of 3 steps" in page
        assert "orders-7" in page

    def test_an_empty_plan(self):
        page = html_page(report(flows=(), partitions=(), state="Nothing to do"))
        assert "<h2>Partitions</h2>" not in page
        assert "<h2>Copies between brokers</h2>" not in page

    def test_partitions_that_could_not_be_read(self):
        assert "<h2>Partitions</h2>" not in html_page(report(partitions=None))

    def test_its_size_is_bounded(self, monkeypatch):
        """Whatever else is on it; it says how many partitions it shows."""
        monkeypatch.setattr(pages, "MOST_BYTES", 70_000)
        page = html_page(report(partitions=random_rows(3000), brokers=report().brokers * 20))
        assert 65_000 < len(page.encode()) <= 71_000
        shown = re.search(r"([\d,]+) of 3,000 partitions that change, those with the largest copies", page)
        assert shown is not None
        assert 100 < int(shown[1].replace(",", "")) < 3000

    def test_light_and_dark(self):
        """Each colour of the one has its counterpart in the other."""
        page = html_page(report())
        light, dark = (
            set(re.findall(r"--([\w-]+):", block)) for block in re.findall(r":root \{(.*?)\}", page, re.DOTALL)
        )
        assert light - {"on-dark", "on-light"} == dark
        assert set(re.findall(r"var\(--([\w-]+)\)", page)) <= light


def test_the_progress_of_a_rollback_is_named():
    """Its partitions are not those that the run has completed."""
    page = markdown_page(report(course=course(), moved_back="The moves were taken back."))
    assert "## Progress of the rollback" in page
    assert "## Progress of the run" not in page


@pytest.mark.parametrize("draw", [html_page, markdown_page])
def test_moves_that_were_taken_back(draw):
    """The figures after the plan are not those of the brokers."""
    _, _, figures = draw(report(moved_back="The moves were taken back.")).partition("Before and after")
    assert figures.index("The moves were taken back.") < figures.index("Preferred leaders")


class TestMarkdown:
    def test_the_same_figures(self):
        page = markdown_page(report(course=course(), curve=CURVE))
        assert "| 3 | a | 0 → 2 | 0 → 1 | 0 B → 6.0 MiB |" in page
        assert "| 4 (leaves) | b | 1 |" in page
        assert "| 2 | 3 | 1 | 5.0 MiB |" in page
        assert "| orders-1 | 2, 1 | 2, 3 | 5.0 MiB |" in page
        assert f"`{PLAN.hash}`" in page
        assert "- 2 replicas share a rack." in page

    def test_tables_are_not_broken(self):
        """Text with bars or line ends stays in its cell."""
        page = markdown_page(report(title="a|b\n# c"))
        assert page.startswith("# a\\|b # c\n")
        rows = [line for line in page.splitlines() if line.startswith("|")]
        assert rows
        assert all(line.endswith("|") for line in rows)

    @pytest.mark.parametrize(
        ("said", "written"),
        [
            ("![x](y.png)", "!\\[x\\](y.png)"),
            ("[approved](y)", "\\[approved\\](y)"),
            ("a\\|b", "a\\\\\\|b"),
            ("\\*b\\*", "\\\\\\*b\\\\\\*"),
            ("<img>&lt;", "\\<img\\>\\&lt;"),
            ("`b` _b_ ~~b~~", "\\`b\\` \\_b\\_ \\~\\~b\\~\\~"),
            *((f"a{end}# b", "a # b") for end in "\n\r\v\f\x85\u2028\u2029"),
        ],
    )
    def test_names_and_messages_are_text(self, said, written):
        """Those of a server that is not trusted come into the pull requests of others."""
        assert markdown_page(report(title=said)).startswith(f"# {written}\n")

    @pytest.mark.parametrize(
        ("said", "written"),
        [
            ("see https://h/p", "see https:\u2060//h/p"),
            ("HTTP://h", "HTTP:\u2060//h"),
            ("www.h.org and www.h.org", "www\u2060.h.org and www\u2060.h.org"),
            ("(WWW.h.org) _www.h", "(WWW\u2060.h.org) \\_www\u2060.h"),
            ("me@h.org, @team, org/@x", "me@\u2060h.org, @\u2060team, org/@\u2060x"),
            ("org/repo#12, #12 and !12", "org/repo#\u206012, #\u206012 and !\u206012"),
            ("GH-12 of gh-3, high-2", "GH\u2060-12 of gh\u2060-3, high-2"),
            ("kafka-0:9092, 10%, a!", "kafka-0:9092, 10%, a!"),
        ],
    )
    def test_a_host_links_nothing_and_notifies_nobody(self, said, written):
        """GitHub and GitLab link bare addresses, and names and numbers after a sign, even if the sign is escaped."""
        assert markdown_page(report(title=said)).startswith(f"# {written}\n")

    @pytest.mark.parametrize("said", ["`", "a` | **b**", "a\n# b", "@team"])
    def test_only_simple_words_are_code(self, said):
        """The hash in a plan file may be any text, and a code span has no escapes."""
        page = markdown_page(report(facts=[Fact("Plan", said, code=True)]))
        shown = said.translate(pages._MARKUP)
        assert f"| Plan | {shown.replace('@', chr(64) + chr(0x2060))} |\n" in page

    def test_markup_is_escaped_wherever_text_of_a_cluster_is_shown(self):
        said = "*b*"
        conditions = [Conditioned(said, said, said, said, NOW)]
        page = markdown_page(
            report(
                title=said,
                state=said,
                facts=[Fact("Now", said)],
                brokers=[replace(row, rack=said) for row in ROWS[:1]],
                partitions=[PartitionRow(TopicPartition(said, 0), (), (), 0)],
                why=[said],
                risks=[said],
                course=replace(course(), conditions=conditions),
            )
        )
        assert page.count("\\*b\\*") == 11
        assert said not in page

    def test_of_a_large_cluster(self):
        """It stays short enough for a pull request; how much is left out is said."""
        rows = report().brokers * 100
        page = markdown_page(report(partitions=report().partitions * 100, brokers=rows))
        assert "100 of 300 partitions that change" in page
        assert len(BROKERS) < 40
