"""Prepared pages from a few numbers, for tests of what happens after the fingerprint."""

import random
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

from dedup_service._native import Entry
from dedup_service.core.decision.decider import Decider, DeciderState
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.runtime.embedded.state import PAGES_FOLDER, State
from tests.made_evidence import prepared_text

SPACE_ID = "test-space"
SPACE = {"scheme": "test"}

STEP = 0x9E3779B97F4A7C15


def prepared(
    url: str,
    story: int,
    *,
    version: int = 0,
    page_id: str | None = None,
    text: str | None = None,
    reason: str | None = None,
    evidence: bytes | None = None,
) -> PreparedPage:
    """The page at `url` telling `story`: stories are far apart, versions of one story a bit or two."""
    fingerprint = (story + 1) * STEP % (1 << 64) ^ version
    page = Page(
        url=url, canonical_url=url, id=page_id or url, title=f"story {story}", text=text or f"story {story}, {version}"
    )
    body_hash = (story * 1000 + version) * STEP % (1 << 64)
    packed, keys = evidence_and_keys(story, version) if evidence is None else (evidence, b"")
    text_hash = (body_hash + STEP) % (1 << 64)
    return PreparedPage(page, Fingerprint(fingerprint, fingerprint), body_hash, packed, reason, text_hash, keys)


@cache
def evidence_and_keys(story: int, version: int) -> tuple[bytes, bytes]:
    """Evidence and keys of a text that depends on the story; another version has one more sentence."""
    rng = random.Random(story)
    sentences = ["".join(chr(rng.randrange(0x4E00, 0x9000)) for _ in range(20)) for _ in range(15)]
    made = prepared_text("。".join([*sentences, *(["另有一句话写在最后面"] * bool(version))]))
    return made.evidence, made.keys


def kill(state: State) -> None:
    """Let go of the files of a state as a killed process does: of the kept pages, the last commit is left."""
    if state._commits is not None and state._entries is not None:
        state._commits.wait()
        state._entries.close()
    state.journal.close()


def lose_pages(folder: Path) -> None:
    """Remove the kept pages of a state."""
    shutil.rmtree(folder / PAGES_FOLDER)


def state_of(decider: Decider) -> DeciderState:
    """What later verdicts depend on: not the addresses of removed entries, whose places the cells still need."""
    state = decider.state()
    return replace(state, removed=tuple(replace(gone, entry=_without_url(gone.entry)) for gone in state.removed))


def _without_url(one: Entry) -> Entry:
    values = (one.indexed, one.evidence, one.text_hash, one.host, one.ordinal, one.keys, one.settled)
    return Entry(one.sequence, one.words, one.body, one.body_hash, 0, *values)
