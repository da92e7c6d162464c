"""A generated crawl as records of a log: sites with templates, copies, repeat visits, claims, and what operators do.

Texts are few and short, and sites share templates, so that cells crowd and equal texts, equal fingerprints and
equal keys are frequent. `written_log` makes a log of it, with records that come twice, pages of another space, and
changes of policy. Invariant: the same seed gives the same records.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.log_records import (
    CorrectionRecord,
    ExpiredRecord,
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    RejectedRecord,
    RetractionRecord,
    Source,
    TimeRecord,
    UnwrittenRecord,
)
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.splitmix import splitmix64
from dedup_service.core.url import url_hash
from dedup_service.runtime.kafka.messages.log_record import numbered
from tests.made_evidence import prepared_text
from tests.oracle.log import Oracle
from tests.sharded_run import LoggedMessage, messages_of

SITES, LATE = 6, 40
SHORT = 60

Change = RetractionRecord | CorrectionRecord | TimeRecord | Keep
"""What is not a page: a record, or bounds of expiry that are in force from here on."""


class Crawl:
    """Pages and changes in random order. pages: expected number of pages, by which bounds of expiry are chosen."""

    def __init__(self, seed: int, pages: int) -> None:
        self._rng = random.Random(seed)
        self._pages = pages
        self._stories: list[tuple[str, list[str]]] = []
        self._visited: list[tuple[str, str, str]] = []  # URL, title, text
        self._minute = 1_000
        self._templates = [[self._sentence() for _ in range(5 * site)] for site in range(SITES)]

    def batches(self, most: int) -> Iterator[tuple[list[PreparedPage], list[Change]]]:
        """Yield the pages in batches of 1 to `most`, each with the changes after it."""
        left = self._pages
        while left > 0:
            batch = [self.page() for _ in range(min(left, self._rng.randint(1, most)))]
            left -= len(batch)
            yield batch, [self._change() for _ in range(self._rng.choice([0, 1, 3]))]

    def page(self) -> PreparedPage:
        """Return the next page."""
        chance = self._rng.random()
        if chance < 0.16 and self._visited:
            return self._visited_again(unchanged=chance < 0.08)
        title, text, far = self._content()
        url = f"http://site{self._rng.randrange(SITES)}/{len(self._visited)}"
        claimed = self._known()[0] if self._visited and self._rng.random() < 0.06 else None
        if claimed is not None and self._rng.random() < 0.5:
            title, text, far = self._of_url(claimed)
        self._visited.append((url, title, text))
        return self._prepared(url, title, text, far, claimed)

    def _content(self) -> tuple[str, str, int]:
        """Return title, text and the fingerprint of a page of one of the kinds of a crawl."""
        rng = self._rng
        chance, template = rng.random(), rng.choice(self._templates)
        if chance < 0.4 or not self._stories:
            own = [self._sentence() for _ in range(rng.choice([3, 6, 12]))]
            self._stories.append((f"{rng.choice(['news', 'report', 'notice'])} {len(self._stories) % 50}", own))
            return self._framed(len(self._stories) - 1, own, template, 0)
        if chance < 0.45:
            return "welcome", "".join(template), 7  # a template alone: equal texts and equal fingerprints
        if chance < 0.5:
            return "", "", 0
        number = max(0, len(self._stories) - 1 - int(rng.expovariate(1 / LATE))) if chance < 0.8 else rng.randrange(9)
        own = list(self._stories[number % len(self._stories)][1])
        if chance < 0.6:
            return self._framed(number % len(self._stories), own, template, 0)
        if rng.random() < 0.3:
            own = own[: rng.randint(1, len(own))] + [self._sentence() for _ in range(rng.choice([0, 1, len(own)]))]
        else:
            own[rng.randrange(len(own))] = self._sentence()
        return self._framed(number % len(self._stories), own, template, rng.choice([1, 3, 4, 20]))

    def _framed(self, number: int, own: list[str], template: list[str], bits: int) -> tuple[str, str, int]:
        title = self._stories[number][0] if self._rng.random() < 0.8 else f"another title {self._rng.randrange(5)}"
        far = splitmix64(number)
        for bit in self._rng.sample(range(64), bits):
            far ^= 1 << bit
        return title, "".join([*template, *own]), far

    def _visited_again(self, *, unchanged: bool) -> PreparedPage:
        url, title, text = self._known()
        far = url_hash(text)
        if not unchanged:
            title, text, far = self._of_url(self._known()[0]) if self._rng.random() < 0.3 else self._content()
            self._visited.append((url, title, text))
        return self._prepared(url, title, text, far, None)

    def _of_url(self, url: str) -> tuple[str, str, int]:
        title, text = next((title, text) for known, title, text in reversed(self._visited) if known == url)
        return title, text, url_hash(text)

    def _known(self) -> tuple[str, str, str]:
        late = int(self._rng.expovariate(1 / LATE))
        return self._visited[-1 - late] if late < len(self._visited) else self._rng.choice(self._visited)

    def _prepared(self, url: str, title: str, text: str, far: int, claimed: str | None) -> PreparedPage:
        page = Page(url=url, canonical_url=url, id=url, title=title, claimed_url=None if claimed == url else claimed)
        if not text:
            return PreparedPage(page, Fingerprint(), None, reason="no text")
        evidence, keys, size = _read(title, text)
        return PreparedPage(
            page,
            Fingerprint(far, splitmix64(far) if self._rng.random() < 0.9 else None),
            url_hash(text),
            evidence,
            "too little text" if size < SHORT else None,
            url_hash(f"{title}\n{text}"),
            keys,
        )

    def _change(self) -> Change:
        chance = self._rng.random()
        if chance < 0.4:
            self._minute += self._rng.randint(-1, 3)
            return TimeRecord(self._minute)
        if chance < 0.65:
            return RetractionRecord(self._known()[0], "gone")
        if chance < 0.9:
            one, other = self._known()[0], self._known()[0]
            return CorrectionRecord(one, other if other != one else f"{one}/", chance < 0.8, "seen")
        bounds = Keep(max_pages=self._pages // self._rng.choice([4, 10]), max_age_minutes=self._rng.choice([None, 20]))
        return self._rng.choice([KEEP_ALL, bounds])

    def _sentence(self) -> str:
        words = ("".join(self._rng.choices("abcdefghijklmnop", k=self._rng.randint(3, 8))) for _ in range(8))
        figure = f" {self._rng.randrange(40)} ships" if self._rng.random() < 0.2 else ""
        return f"{' '.join(words)}{figure}. "


@cache
def _read(title: str, text: str) -> tuple[bytes, bytes, int]:
    """Return evidence and keys of a text, and how many letters it has."""
    made = prepared_text(text, title)
    return made.evidence, made.keys, Evidence(made.evidence).letters


class WrittenLog:
    """A log that is written message by message, and read by the oracle at once."""

    def __init__(self, policy: Policy) -> None:
        self.messages: list[LoggedMessage] = []
        self.oracle = Oracle()
        self.records: list[PageRecord] = []
        self._sequences: list[int] = []
        self.add([PolicyRecord(policy, initial=True, log="a-log")])

    def add(self, records: Sequence[LogRecord]) -> list[int]:
        """Append a message with these records, pages or one record of another kind; return their sequences."""
        (message,) = messages_of([records], first=2 * len(self.messages))
        self.messages.append(message)
        sequences = []
        for sequence, record in numbered([message]):
            self.oracle.read(sequence, record)
            sequences.append(sequence)
        self._sequences += sequences
        return sequences

    def pages(self, pages: Sequence[PreparedPage], space_id: str | None = None) -> list[int]:
        """Append a message with these pages, each of which is another delivery."""
        assert self.oracle.policy is not None
        space = space_id or self.oracle.policy.space_id
        first = len(self.records)
        self.records += [PageRecord(Source("pages", 0, at), page, space) for at, page in enumerate(pages, first)]
        return self.add(self.records[first:])

    def drop(self, sequences: Sequence[int]) -> None:
        """Append that pages were never passed on."""
        self.add([UnwrittenRecord(tuple(sequences), "lost")])

    def said(self) -> dict[Source, bytes | None]:
        """Return what brute force says of each input record."""
        return {source: answer.value for source, answer in self.oracle.answers.items()}

    def live(self) -> list[int]:
        """Return the sequences of the pages that are kept."""
        return [sequence for sequence in self._sequences if self.oracle.holds(sequence)]


def written_log(
    seed: int, pages: int, policy: Policy, *, most: int = 120, rules: Sequence[MatchRule] = ()
) -> WrittenLog:
    """Return the log of a generated crawl. most: pages of a message. rules: now and then one is put in force."""
    log, rng = WrittenLog(policy), random.Random(seed)
    log.add([TimeRecord(999)])
    for batch, changes in Crawl(seed, pages).batches(most):
        log.pages(batch)
        chance = rng.random()
        if chance < 0.1:
            log.add([rng.choice(log.records)])  # it was answered already
        elif chance < 0.15:
            log.pages(batch[:1], "another-space")
        elif chance < 0.18:
            first = rng.randrange(30)
            log.add([ExpiredRecord(Source("pages", 1, first), first + 4)])
        elif chance < 0.2:
            log.add([RejectedRecord(Source("pages", 1, rng.randrange(30)), "no page")])
        elif chance < 0.3:
            live = log.live()
            log.drop(rng.sample(live, min(len(live), 3)))
        elif chance < 0.4 and rules:
            policy = replace(policy, rule=rng.choice(rules))
            log.add([PolicyRecord(policy)])
        for change in changes:
            if isinstance(change, Keep):
                policy = replace(policy, keep=change)
            log.add([PolicyRecord(policy) if isinstance(change, Keep) else change])
    return log
