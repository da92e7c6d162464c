"""The ways in which the pages of a crawl come to the product, each from the beginning to its verdicts.

Every way returns the verdicts as lines of JSON, in crawl order. A way with a state has it in `folder`.
"""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from dedup_service import (
    PROFILES,
    BatchEvent,
    Keep,
    NearDuplicateFilter,
    Observer,
    Page,
    PreparedPage,
    StateError,
    extract,
    prepare,
    to_page,
)
from dedup_service.core.decision.replica import Outcome
from dedup_service.core.log_records import (
    CorrectionRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RetractionRecord,
    Source,
)
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import Action
from dedup_service.interfaces.cli.main import run
from dedup_service.runtime.verdict_json import verdict_line
from tests.golden.crawls import Crawl, Fetched, Section, Step
from tests.oracle.crawl import Crawl as GeneratedCrawl
from tests.sharded_run import LoggedMessage, ShardedRun, decided_alone, messages_of

T = TypeVar("T")

BATCH = 64
MESSAGE_PAGES = 40
LAYOUT = IndexLayout(slots=8, window=256)
"""Of the crawls as logs: a short window, so that shards answer for most pages, and long enough for `changes`, whose
crowded cells lack a candidate that a state still has in its window."""

SHORT = IndexLayout(slots=8, window=64)
"""Of the generated log."""

Way = Callable[[Crawl, Path], list[bytes]]


class DecidingError(Exception):
    """A way did not come to its end."""


def one_by_one(crawl: Crawl, folder: Path) -> list[bytes]:
    """Call `check` and `check_html` for each page."""
    lines = []
    for section in crawl.sections:
        with _opened(section, folder) as dedup:
            for step in section.steps:
                if not isinstance(step, Fetched):
                    _change(dedup, step)
                elif step.body is None or step.id is not None:
                    lines.append(verdict_line(dedup.check(_page(step))))
                else:
                    lines.append(verdict_line(dedup.check_html(step.body, step.url, content_type=step.content_type)))
    return lines


def batches(crawl: Crawl, folder: Path) -> list[bytes]:
    """Call `check_many`."""
    return [line for section in crawl.sections for line in _in_batches(section, folder)]


def continued(crawl: Crawl, folder: Path) -> list[bytes]:
    """Close the state and open it again every hundred steps."""
    parts = (
        Section(steps, section.profile, section.keep)
        for section in crawl.sections
        for steps in _batched(section.steps, 100)
    )
    return [line for part in parts for line in _in_batches(part, folder, snapshot_every=70)]


def killed(crawl: Crawl, folder: Path) -> list[bytes]:
    """Kill the process with SIGKILL three times, each time when a page is durable and its verdict not yet returned."""
    lines: list[bytes] = []
    for quarter in (1, 2, 3):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                kill = _KillAt(crawl.pages * quarter // 4 - len(lines))
                with os.fdopen(write, "wb", buffering=0) as pipe:
                    for line in _gone_on(crawl, folder, len(lines), observers=[kill]):
                        pipe.write(line)
            finally:
                os._exit(1)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            lines += pipe
        _, status = os.waitpid(child, 0)
        if os.WTERMSIG(status) != signal.SIGKILL:
            raise DecidingError(
                f"the process was not killed in quarter {quarter}: it ended after {len(lines)} verdicts"
            )
    return lines + list(_gone_on(crawl, folder, len(lines)))


def command(crawl: Crawl, folder: Path) -> list[bytes]:
    """Run `twinsieve filter` on files of JSON lines, with two workers."""
    lines: list[bytes] = []
    folder.mkdir(exist_ok=True)
    for section in crawl.sections:
        for pages in runs_of(section.steps):
            if isinstance(pages, list):
                source = folder / "pages.jsonl"
                source.write_bytes(b"".join(page.line(len(lines) + at) for at, page in enumerate(pages)))
                options = ["--profile", section.profile, "--keep", section.keep, "--processes", "2"]
                lines += filtered(source, folder, *options, state=folder / "state")
            else:
                with _opened(section, folder / "state") as dedup:
                    _change(dedup, pages)
    return lines


def filtered(source: Path, folder: Path, *options: str, state: Path) -> list[bytes]:
    """Return what `twinsieve filter` writes. folder: for its output."""
    return written(["filter", str(source), "--state", str(state), "--quiet", *options], folder)


def written(arguments: Sequence[str], folder: Path) -> list[bytes]:
    """Run the command line and return the lines of its output. folder: for the output."""
    output = folder / "verdicts.jsonl"
    code = run([*arguments, "--output", str(output)])
    if code:
        raise DecidingError(f"twinsieve {' '.join(arguments)} ended with {code}")
    return output.read_bytes().splitlines(keepends=True)


def shards(crawl: Crawl, _folder: Path) -> list[bytes]:
    """Decide a log with two shards and a resolver in this process, without a broker."""
    outcomes = ShardedRun(2).decide(messages_of(list(_log(crawl))))
    return [verdict_line(outcome.verdict) for outcome in outcomes if outcome.verdict is not None]


WAYS: dict[str, Way] = {
    "one by one": one_by_one,
    "batches": batches,
    "continued": continued,
    "killed three times": killed,
    "command, 2 workers": command,
    "2 shards": shards,
}
NUMBERED_OTHERWISE = frozenset({"2 shards"})
"""Ways whose sequences count messages of a log."""

LOG_WAYS: dict[str, Callable[[list[LoggedMessage]], Iterator[Outcome]]] = {
    "log": lambda messages: iter(decided_alone(messages)),
    "log, 2 shards": lambda messages: ShardedRun(2).decide(messages),
    "log, 4 shards, restarted": lambda messages: ShardedRun(4, restarts=frozenset({40, 80})).decide(messages),
}


def generated_log(pages: int) -> list[LoggedMessage]:
    """Return a crowded crawl as a log: pages with fingerprints, claims, times, expiry and changes of policy."""
    policies = [PROFILES[name] for name in ("balanced", "simhash", "broad", "precise")]
    policy = Policy(policies[0], Action.FLAG, "a-space", SHORT)
    messages: list[list[LogRecord]] = [[PolicyRecord(policy, initial=True, log="a-log")]]
    offset = 0
    for number, (batch, changes) in enumerate(GeneratedCrawl(5, pages).batches(MESSAGE_PAGES)):
        messages.append([PageRecord(Source("pages", 0, offset + at), page, "a-space") for at, page in enumerate(batch)])
        offset += len(batch)
        for change in changes:
            if isinstance(change, Keep):
                policy = Policy(policy.rule, Action.FLAG, "a-space", SHORT, change)
            messages.append([PolicyRecord(policy) if isinstance(change, Keep) else change])
        if number % 16 == 15:
            policy = Policy(policies[number // 16 % 4], Action.FLAG, "a-space", SHORT, policy.keep)
            messages.append([PolicyRecord(policy)])
    return messages_of(messages)


def decided_lines(outcomes: Iterator[Outcome]) -> list[bytes]:
    """Return the verdicts of a log as lines."""
    return [verdict_line(outcome.verdict) for outcome in outcomes if outcome.verdict is not None]


def _opened(section: Section, folder: Path, **options: Any) -> NearDuplicateFilter:
    return NearDuplicateFilter.open(folder, rule=PROFILES[section.profile], keep=section.keep, **options)


def _in_batches(section: Section, folder: Path, **options: Any) -> Iterator[bytes]:
    with _opened(section, folder, **options) as dedup:
        for pages in runs_of(section.steps):
            if not isinstance(pages, list):
                _change(dedup, pages)
                continue
            for batch in _batched(pages, BATCH):
                yield from map(verdict_line, dedup.check_many(map(_page, batch)))


def runs_of(steps: Sequence[Step]) -> Iterator[list[Fetched] | RetractionRecord | CorrectionRecord]:
    """Yield the pages between two changes together, and each change."""
    pages: list[Fetched] = []
    for step in steps:
        if isinstance(step, Fetched):
            pages.append(step)
            continue
        if pages:
            yield pages
        pages = []
        yield step
    if pages:
        yield pages


class _KillAt(Observer):
    """Kills its process when a batch is durable. batches: how many it lets pass before."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def batch(self, event: BatchEvent) -> None:
        """Count a batch."""
        self._left -= 1
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def _gone_on(crawl: Crawl, folder: Path, given: int, **options: Any) -> Iterator[bytes]:
    """Yield the verdicts behind the first `given`, page by page; a page that was decided has the verdict it had."""
    number = 0
    for section in crawl.sections:
        pages = sum(isinstance(step, Fetched) for step in section.steps)
        if number + pages <= given:
            number += pages
            continue
        with _opened(section, folder, snapshot_every=70, **options) as dedup:
            for step in section.steps:
                if isinstance(step, Fetched):
                    number += 1
                    if number > given:
                        yield verdict_line(dedup.check(_page(step), delivery_id=b"%d" % number))
                elif number > given:
                    _change(dedup, step)


def _batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    rest = iter(items)
    while batch := tuple(islice(rest, size)):
        yield batch


def _change(dedup: NearDuplicateFilter, step: RetractionRecord | CorrectionRecord) -> None:
    if isinstance(step, CorrectionRecord):
        dedup.correct(step)
    else:
        with suppress(StateError):  # it may not be kept, or no longer
            dedup.retract(step.url)


def _page(fetched: Fetched) -> Page:
    if fetched.body is not None:
        extraction = extract(fetched.body, declared_encoding=fetched.content_type)
        return to_page(extraction, fetched.url, id=fetched.id)
    url, name = fetched.url, fetched.id or fetched.url
    return Page(url=url, canonical_url=canonicalise(url), id=name, title=fetched.title, text=fetched.text)


def _log(crawl: Crawl) -> Iterator[list[LogRecord]]:
    space_id, offset = _space_id(), 0
    for number, section in enumerate(crawl.sections):
        policy = Policy(PROFILES[section.profile], Action.FLAG, space_id, LAYOUT, Keep.parse(section.keep))
        yield [PolicyRecord(policy) if number else PolicyRecord(policy, initial=True, log="a-log")]
        for pages in runs_of(section.steps):
            if not isinstance(pages, list):
                yield [pages]
                continue
            for batch in _batched(map(_prepared, pages), MESSAGE_PAGES):
                yield [PageRecord(Source("pages", 0, offset + at), page, space_id) for at, page in enumerate(batch)]
                offset += len(batch)


def _prepared(fetched: Fetched) -> PreparedPage:
    return prepare(_page(fetched))


def _space_id() -> str:
    with NearDuplicateFilter.open(None) as dedup:
        return dedup.space_id
