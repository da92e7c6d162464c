"""Pages of a few sites with templates, so that keys are common, cells overflow, and windows matter."""

import random
from functools import cache

from dedup_service._native import Entry
from dedup_service.core.decision.decider import Decider, Decision
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.keep import KEEP_ALL, Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.splitmix import splitmix64
from dedup_service.core.url import url_hash
from tests.made_evidence import prepared_text

_words = random.Random(11)
SENTENCES = ["".join(_words.choices("abcdefghijklmnopqrstuvwxyz" + " " * 6, k=70)) + ". " for _ in range(40)]
TEMPLATE = SENTENCES[:12]
OWN = SENTENCES[12:]


@cache
def content(number: int) -> tuple[str, bytes, bytes, int]:
    """Title, evidence, keys and hash of a text: 12 stories under a template, each in some versions."""
    chosen = random.Random(number)
    story = number % 12
    own = random.Random(story).sample(OWN, 6)
    del own[: chosen.randrange(3)]
    parts = [*TEMPLATE[: chosen.choice([0, 4, 12])], *own, *chosen.sample(OWN, chosen.randrange(2))]
    if number % 17 == 0:
        parts = parts[:1]
    title, text = f"{chosen.choice(['news', 'report'])} {story}", "".join(parts)
    made = prepared_text(text, title)
    return title, made.evidence, made.keys, url_hash(title + text)


def page_at(seed: int) -> PreparedPage:
    """A page of three hosts, with a claim now and then, near the other versions of its story or far from them."""
    chosen = random.Random(seed)
    url = f"http://site{chosen.randrange(3)}/{chosen.randrange(20)}"
    title, evidence, keys, hashed = content(chosen.randrange(60))
    claimed = f"http://site1/{chosen.randrange(20)}" if chosen.random() < 0.1 else None
    page = Page(url=url, canonical_url=url, id=url, title=title, claimed_url=None if claimed == url else claimed)
    if chosen.random() < 0.05:
        return PreparedPage(page, Fingerprint(), None, reason="no text")
    far = splitmix64(hashed) if chosen.random() < 0.7 else hashed % 4
    reason = "too little text" if chosen.random() < 0.05 else None
    return PreparedPage(page, Fingerprint(far, splitmix64(far)), hashed, evidence, reason, splitmix64(hashed), keys)


def page_of(url: str, parts: list[str]) -> PreparedPage:
    """A page with the evidence and the keys of a text; its fingerprints and hashes are far from all others."""
    made, far = prepared_text("".join(parts)), url_hash(url)
    page = Page(url=url, canonical_url=url, id=url)
    return PreparedPage(page, Fingerprint(far, far), far, made.evidence, text_hash=far, keys=made.keys)


class Run:
    """A decider with the names and the decisions of its pages. begun: to go on as another run would."""

    def __init__(self, rule: MatchRule, layout: IndexLayout, begun: "Run | None" = None) -> None:
        self.rule, self.layout = rule, layout
        self.names: dict[int, str] = {} if begun is None else dict(begun.names)
        self.sequence: int = 0 if begun is None else begun.sequence
        self.corrections: list[CorrectionRecord] = [] if begun is None else list(begun.corrections)
        self.decider: Decider = Decider(
            rule,
            "space",
            self,
            layout=layout,
            overrides=Overrides(self.corrections),
            restored=() if begun is None else begun.decider.held(),
            state=None if begun is None else begun.decider.state(),
            keep=KEEP_ALL if begun is None else begun.decider.keep,
        )

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of a page."""
        return self.names[sequence], self.names[sequence]

    def next(self, prepared: PreparedPage) -> int:
        """Return the sequence of the next page, which has a name from now on."""
        self.sequence += 1
        self.names[self.sequence] = prepared.page.id
        return self.sequence

    def decide(self, pages: list[PreparedPage], *, batch: bool = False) -> list[Decision]:
        """Decide pages, one by one or as a batch."""
        numbered = [(self.next(page), page) for page in pages]
        if not batch:
            return [self.decider.decide(*page) for page in numbered]
        return list(self.decider.decide_all(numbered))

    def replay(self, pages: list[PreparedPage], decisions: list[Decision]) -> None:
        """Apply decisions that another run made."""
        numbered = [(self.next(page), page) for page in pages]
        self.decider.replay(numbered, [(made.kept, made.replaces, made.copy) for made in decisions])

    def retract(self, number: int) -> None:
        """Remove one of the live entries, if there is any."""
        live = [sequence for sequence in self.names if self.decider.holds(sequence)]
        if live:
            self.decider.retract(live[number % len(live)])

    def time(self, minutes: int) -> None:
        """Let some minutes pass in the log; a negative number tells an earlier time."""
        self.decider.advance(self.sequence, (self.decider.minute or 1_000) + minutes)

    def keep(self, number: int) -> None:
        """Change the bounds of expiry."""
        pages, age = number % 10, number // 10 % 10
        self.decider.keep = Keep(max_pages=pages or None, max_age_minutes=age or None)

    def correct(self, number: int) -> None:
        """Call two addresses copies of each other, or not."""
        chosen = random.Random(number)
        url, original = (f"http://site{chosen.randrange(3)}/{chosen.randrange(20)}" for _ in range(2))
        record = CorrectionRecord(url, original, duplicate=chosen.random() < 0.5, reason="")
        self.corrections.append(record)
        self.decider.correct(record)
        visit = self.decider.sequence_of(url)
        if record.duplicate and visit is not None:
            self.decider.retract(visit)

    def snapshot(self) -> tuple[object, list[Entry]]:
        """All that later verdicts depend on."""
        return self.decider.state(), self.decider.held().entries()
