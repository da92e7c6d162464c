"""`twinsieve crawl` as a process: its outputs and exit codes."""

import gzip
import signal
import subprocess
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.embedded.state_info import state_info
from tests.crawler.running import FAST, environment, json_lines, run, twinsieve
from tests.hangs import HANG_S, wait_until
from twinsieve_crawler.demo.server import serve
from twinsieve_crawler.demo.site import build_site

PAGES = build_site()
pytestmark = pytest.mark.slow


def test_it_keeps_each_page_once_and_writes_every_verdict(tmp_path: Path) -> None:
    """Kept pages are in the feed, all verdicts in --verdicts; counts add up; robots.txt is obeyed."""
    with serve(PAGES) as server:
        outputs = ("-o", "pages.jsonl", "--verdicts", "v.jsonl", "--state", "s", "--json")
        done = run("crawl", server.url, *FAST, *outputs, cwd=tmp_path)
        visits = Counter(server.visits)
    assert done.returncode == 0, done.stderr
    [summary] = json_lines(done.stderr)
    verdicts, items = (json_lines((tmp_path / name).read_text("utf-8")) for name in ("v.jsonl", "pages.jsonl"))
    assert summary["pages"] == len(verdicts) == len(PAGES)
    assert summary["verdicts"]["duplicate"] == summary["items_dropped"] > 10
    assert summary["kept"] == len(items)
    assert not {item["url"] for item in items} & {v["url"] for v in verdicts if v["verdict"] == "duplicate"}
    assert len({item["canonical_url"] for item in items}) == len(items)
    assert {item["group"] for item in items if item["verdict"] == "unique"} >= {
        verdict["group"] for verdict in verdicts if verdict["verdict"] == "duplicate"
    }
    assert visits["/private/login"] == 0
    assert all(item["title"] for item in items if urlsplit(item["url"]).path != "/")


@pytest.mark.long
def test_a_second_crawl_on_the_same_state_finds_nothing_new(tmp_path: Path) -> None:
    """Every kept page is unchanged or updated. Without --output, the feed goes to standard output."""
    with serve(PAGES) as server:
        arguments = ("crawl", f"{server.url}courier/", *FAST, "--state", "s", "--depth", 1, "--json")
        first, second = (run(*arguments, cwd=tmp_path) for _ in range(2))
    before, after = (json_lines(done.stderr)[0]["verdicts"] for done in (first, second))
    assert (first.returncode, second.returncode) == (0, 0)
    assert after["unique"] == 0
    assert before["unique"] == after["unchanged"] == len(json_lines(second.stdout)) - before["undecided"]


def test_late_verdicts_pass_their_pages_and_are_all_given_before_the_end(tmp_path: Path) -> None:
    """No page waits: copies are in the feed as well, without a verdict; file and state have the verdict of each."""
    with serve(PAGES) as server:
        late = ("--set", "TWINSIEVE_DEADLINE_S=0.000001")
        outputs = ("-o", "pages.jsonl", "--verdicts", "v.jsonl", "--state", "s", "--json")
        done = run("crawl", server.url, *FAST, *late, *outputs, "--depth", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [summary] = json_lines(done.stderr)
    verdicts, items = (json_lines((tmp_path / name).read_text("utf-8")) for name in ("v.jsonl", "pages.jsonl"))
    assert summary["pages"] == summary["late"] == summary["kept"] == len(items) == len(verdicts)
    assert sum(summary["verdicts"].values()) == summary["pages"]
    assert {item["verdict"] for item in items} == {item["group"] for item in items} == {None}
    assert {item["url"] for item in items} == {verdict["url"] for verdict in verdicts}
    assert summary["verdicts"] == state_info(tmp_path / "s").pages
    assert summary["verdicts"]["duplicate"] > 0


def test_a_state_in_use_ends_the_crawl_before_it_starts(tmp_path: Path) -> None:
    """One line says why, and no page is fetched."""
    with NearDuplicateFilter.open(tmp_path / "s"), serve(PAGES) as server:
        done = run("crawl", server.url, *FAST, "--state", "s", cwd=tmp_path)
        visits = server.visits.total()
    assert (done.returncode, visits) == (1, 0)
    assert done.stderr.splitlines()[-1].startswith("twinsieve: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "TWINSIEVE_ACTIONS=drop"), "did you mean TWINSIEVE_ACTION"),
        (("--set", "LOG_LEVEL"), "NAME=VALUE"),
        (("--profile", "strict"), "balanced, precise, broad, simhash"),
        (("--bootstrap", "127.0.0.1:9", "--profile", "precise"), "twinsieve serve"),
        (("--set", "TWINSIEVE_KEEP=90x"), "90d, 12h"),
        (("--bootstrap", "127.0.0.1:9", "--set", "TWINSIEVE_KEEP=90d"), "twinsieve serve"),
        (("-o", "pages.doc"), "pages.doc"),
        (("-o", "pages.jsonl", "--verdicts", "pages.jsonl"), "are the same file"),
        (("-o", "nowhere/pages.jsonl"), "there is no such folder"),
        (("--state", "s", "--verdicts", "s/journal.sqlite"), "is in the state folder"),
        (("--prefix", "news."), "--bootstrap"),
        (("--bootstrap", "127.0.0.1:9", "--state", "s"), "twinsieve serve"),
        (("--bootstrap", "127.0.0.1:9", "--set", "TWINSIEVE_PROFILE=body"), "remove TWINSIEVE_PROFILE"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2, and the message names the value or what to do."""
    done = run("crawl", "http://127.0.0.1:9/", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_an_unreachable_site_is_a_failure(tmp_path: Path) -> None:
    """Without any page, the exit code is 1."""
    done = run("crawl", "http://127.0.0.1:9/", *FAST, "--set", "RETRY_ENABLED=0", cwd=tmp_path)
    assert done.returncode == 1
    assert "no page could be fetched" in done.stderr


def test_ctrl_c_finishes_the_pages_in_flight_and_a_job_continues(tmp_path: Path) -> None:
    """The first run ends with code 130; the second crawls the rest, and both files have each page once."""
    job = ("--set", "JOBDIR=job", "-o", "pages.jsonl", "--verdicts", "v.jsonl.gz", "--json")
    with serve(PAGES) as server:
        slow = ("crawl", server.url, *FAST, *job, "--set", "DOWNLOAD_DELAY=0.2")
        with subprocess.Popen(
            twinsieve(*slow), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True
        ) as first:
            wait_until(lambda: server.visits.total() >= 8 or first.poll() is not None)
            first.send_signal(signal.SIGINT)
            _, stderr = first.communicate(timeout=HANG_S)
        half = len((tmp_path / "pages.jsonl").read_text("utf-8").splitlines())
        second = run("crawl", server.url, *FAST, *job, cwd=tmp_path)
    assert (first.returncode, second.returncode) == (130, 0), stderr
    items = json_lines((tmp_path / "pages.jsonl").read_text("utf-8"))
    assert 0 < half < len(items)
    assert len({item["canonical_url"] for item in items}) == len(items)
    counts = [json_lines(text)[0]["pages"] for text in (stderr, second.stderr)]
    assert sum(counts) == len(PAGES)
    with gzip.open(tmp_path / "v.jsonl.gz", "rt", encoding="utf-8") as verdicts:
        assert len({json["url"] for json in json_lines(verdicts.read())}) == len(PAGES)


@pytest.mark.parametrize("option", ["--output", "--verdicts"])
def test_an_output_without_room_closes_the_crawl(tmp_path: Path, option: str) -> None:
    """Later pages would be in the state and nowhere else; the exit code is 1, and the last line says why."""
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    with serve(PAGES) as server:
        done = run("crawl", server.url, *FAST, "-o", "pages.jsonl", option, "full.jsonl", cwd=tmp_path)
        visits = server.visits.total()
    assert done.returncode == 1
    assert "No space left on device" in done.stderr.splitlines()[-1]
    assert visits < len(PAGES)
