"""A page that was taken down can be read nowhere in the state folder, and verdicts go on as if it never was."""

import random
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from dedup_service.core.errors import StateError
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.embedded.database import Database
from dedup_service.runtime.embedded.erasure import ERASED, Erased, Mentions, erase_mentions
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.embedded.state_info import open_read_only

from .prepared import SPACE, SPACE_ID, kill, prepared

SETTINGS = StateSettings(IndexLayout(window=8), snapshot_every=10)
URL = "https://secret.example/private-story"
TITLE, TEXT = "The Private Title", "what nobody may read any more"


def opened(folder: Path | None, settings: StateSettings = SETTINGS) -> State:
    """An open state."""
    return State(folder, SPACE_ID, SPACE, None, settings)


def secret(url: str = URL, story: int = 7, *, version: int = 0, page_id: str | None = None) -> PreparedPage:
    """The page that is taken down, or a copy of it."""
    page = prepared(url, story, version=version, page_id=page_id, text=f"{TEXT} {version}")
    return replace(page, page=replace(page.page, title=TITLE))


def others(state: State, first: int, count: int = 30) -> None:
    """Decide pages of another site."""
    state.decide([(prepared(f"https://a.example/{number}", number), None) for number in range(first, first + count)])


def readable(folder: Path) -> bytes:
    """All bytes of all files of a folder, and what the compressed frames among them say."""
    content = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    frames = []
    for part in content.split(zstandard.MAGIC_NUMBER.to_bytes(4, "little"))[1:]:
        reader = zstandard.ZstdDecompressor().decompressobj()
        try:
            frames.append(reader.decompress(zstandard.MAGIC_NUMBER.to_bytes(4, "little") + part))
        except zstandard.ZstdError:
            continue
    return content + b"".join(frames)


def everywhere(folder: Path) -> bytes:
    """All bytes of all files of a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def assert_gone(folder: Path, *words: str) -> None:
    """None of the words is in any file."""
    found = readable(folder)
    for word in words or (URL, TITLE, TEXT):
        assert word.encode() not in found, word


def test_an_address_that_is_no_web_address_is_erased_whole(tmp_path: Path) -> None:
    """Of `doc://name` nothing is a host: the name may stand where hosts do."""
    state = opened(tmp_path)
    state.decide([(secret("doc://Secret-Report-Of-Smith"), None)])
    others(state, 200)
    state.retract("doc://Secret-Report-Of-Smith")
    state.close()
    assert_gone(tmp_path, "Secret-Report", TITLE, TEXT)
    opened(tmp_path).close()


def test_nothing_of_the_page_is_left_in_the_folder(tmp_path: Path) -> None:
    """Neither while the state is open, nor after it was closed, nor after it was opened again."""
    state = opened(tmp_path)
    others(state, 100)
    state.decide([(secret(), None)])
    others(state, 200)
    assert all(word.encode() in readable(tmp_path) for word in (URL, TITLE, TEXT))
    verdict = state.retract(URL)
    assert (verdict.url, verdict.kind) == (URL, VerdictKind.UNIQUE)
    assert_gone(tmp_path)
    state.close()
    assert_gone(tmp_path)
    again = opened(tmp_path)
    assert again.decide([(secret("https://b.example/copy"), None)])[0].kind is VerdictKind.UNIQUE
    again.close()


@pytest.mark.parametrize("later", [0, 3, 30, 90])
@pytest.mark.parametrize("removed_before", [False, True])
def test_its_evidence_goes_wherever_it_is(tmp_path: Path, later: int, removed_before: bool) -> None:
    """In the journal, in the state of a commit, or with the kept pages; also of a page that was removed before."""
    state = opened(tmp_path)
    others(state, 100)
    page = secret()
    state.decide([(page, None)])
    for start in range(0, later, 5):
        others(state, 200 + start, 5)
    if removed_before:
        state.retract(URL, erase=False)
        others(state, 400, 5)
    state._commits.wait()
    parts = [page.evidence[at : at + 24] for at in range(16, len(page.evidence) - 24, 24)]
    parts = [part for part in parts if len(set(part)) > 8]
    assert parts
    before = everywhere(tmp_path)
    assert all(part in before for part in parts)
    if removed_before:
        with pytest.raises(StateError, match="are erased"):
            state.retract(URL)
    else:
        state.retract(URL)
    for _ in range(2):
        found = everywhere(tmp_path)
        assert not [part for part in parts if part in found]
        state.close()
        state = opened(tmp_path)
    assert state.journal.log.erasing() == []
    state.close()


def test_a_take_down_that_was_interrupted_is_completed_at_the_next_opening(tmp_path: Path) -> None:
    """The retraction is in the journal, the evidence still everywhere."""
    state = opened(tmp_path)
    page = secret()
    state.decide([(page, None)])
    others(state, 100)
    state._commits.wait()
    state.retract(URL, mentions=False)
    part = page.evidence[len(page.evidence) // 2 :][:24]
    kill(state)
    assert part in everywhere(tmp_path)
    opened(tmp_path).close()
    assert part not in everywhere(tmp_path)


def test_every_visit_and_every_mention_goes(tmp_path: Path) -> None:
    """Earlier versions, unchanged visits, visits by claim, texts of copies, and its name in the verdicts on others."""
    state = opened(tmp_path)
    state.decide([(secret(version=4, story=8, page_id="the-private-id"), None)])
    others(state, 100, 5)
    last = state.decide([(secret(), None), (secret(), None)])
    assert [verdict.kind for verdict in last] == [VerdictKind.UPDATED, VerdictKind.UNCHANGED]
    claiming = secret("https://secret.example/print")
    claiming = replace(claiming, page=replace(claiming.page, claimed_url=URL))
    copy = secret("https://b.example/copy")
    near = replace(prepared("https://c.example/far", 900), page=replace(secret("https://c.example/far").page, title=""))
    decided = state.decide([(claiming, None), (copy, None), (near, None)])
    assert [verdict.kind.value for verdict in decided] == ["unchanged", "duplicate", "unique"]
    with state.journal.database.transaction() as connection:
        reason = f"figures differ {URL}"
        connection.execute("UPDATE log SET reason = ? WHERE sequence = ?", (reason, decided[2].sequence))
    state.retract(URL)
    assert_gone(tmp_path, URL, TITLE, "the-private-id", "https://secret.example/print", f"{TEXT} 4")
    assert state.journal.log.verdict_at(decided[2].sequence).reason == "figures differ [erased]"
    of_copy = state.journal.log.verdict_at(decided[1].sequence)
    assert (of_copy.kind, of_copy.url) == (VerdictKind.DUPLICATE, "https://b.example/copy")
    state.close()


def test_a_kill_before_mentions_are_erased_leaves_none_of_them(tmp_path: Path) -> None:
    """The next opening erases what other pages say of it, and the texts of its copies, as if nothing had been."""
    state = opened(tmp_path)
    near = prepared("https://c.example/near", 900)
    state.decide([(secret(), None), (secret("https://b.example/copy"), None), (near, None)])
    with state.journal.database.transaction() as connection:
        connection.execute("UPDATE log SET reason = ? WHERE sequence = 3", (f"figures differ {URL}",))
    state.retract(URL, mentions=False)
    kill(state)
    opened(tmp_path).close()
    assert_gone(tmp_path)


def test_copies_that_a_guard_refused_lose_text_and_title(tmp_path: Path) -> None:
    """They are undecided, name the page in their reason alone, and have its text like any other copy."""
    state = State(tmp_path, SPACE_ID, SPACE, replace(rule_for(), guards=Guards(max_pages=1)), SETTINGS)
    pages = [secret(), *(secret(f"https://b.example/{number}") for number in range(4))]
    verdicts = state.decide([(page, None) for page in pages])
    assert verdicts[-1].kind is VerdictKind.UNDECIDED
    state.retract(URL)
    assert_gone(tmp_path)
    state.close()


def test_a_url_that_begins_like_it_stays(tmp_path: Path) -> None:
    """Neither the page at a longer address nor its name in a verdict is touched."""
    state = opened(tmp_path)
    longer = prepared(URL + "-2", 1)
    state.decide([(secret(), None), (longer, None), (prepared("https://b.example/1", 1), None)])
    state.retract(URL)
    assert [verdict.url for verdict in state.journal.log.visits(URL + "-2")] == [URL + "-2"]
    assert state.journal.log.visits("https://b.example/1")[0].duplicate_of_url == URL + "-2"
    state.close()


def test_many_names_cost_no_more_than_few(tmp_path: Path) -> None:
    """Each word of a reason is looked up once: 30 times as many names take less than 5 times as long."""
    state = opened(tmp_path)
    others(state, 0, 1500)
    with state.journal.database.transaction() as connection:
        connection.execute("UPDATE log SET reason = 'figures differ from what is said at https://a.example/page'")
        taken = []
        for count in (100, 3000):
            erased = Erased(names=frozenset(f"https://a.example/{number}" for number in range(count)))
            begun = time.thread_time()
            erase_mentions(connection, state.journal.texts, erased)
            taken.append(time.thread_time() - begun)
    state.close()
    assert taken[1] < 5 * taken[0]


def test_names_are_found_where_each_one_of_them_would_be() -> None:
    """Brute force tries every name at every place: whole words, the longest first, short ones at the end alone."""
    rng = random.Random(1)
    parts = ["a", "bcdefghij", "https://a.test/1", " ", "  ", ",", ";", "\n", "-"]
    for _ in range(3000):
        names = {"".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 5))}
        names = {name for name in names if name == name.strip()}
        reason = "".join(rng.choices([*parts, *names], k=rng.randint(0, 8))).strip()
        words = [
            rf"(?<=\s){re.escape(name)}$" if len(name) <= 8 else rf"(?<!\S){re.escape(name)}(?=[\s,;]|$)"
            for name in sorted(filter(None, names), key=len, reverse=True)
        ]
        by_all = re.sub("|".join(words) or "(?!)", ERASED, reason)
        assert Mentions(names).erased_from(reason) == by_all, (names, reason)


@pytest.mark.parametrize("later", [0, 30])
@pytest.mark.parametrize("by_id", [False, True])
def test_an_earlier_visit_names_the_page_that_is_kept_now(tmp_path: Path, later: int, by_id: bool) -> None:
    """All visits of its URL go, so the entry of the last one goes, too, with its evidence; a kill loses nothing."""
    state = opened(tmp_path)
    first = state.decide([(secret(version=4, story=8, page_id="an-old-id"), None)])[0]
    others(state, 100, 5)
    page = secret(page_id="the-present-id")
    last = state.decide([(page, None)])[0]
    assert last.kind is VerdictKind.UPDATED
    others(state, 200, later) if later else None
    state._commits.wait()
    reference = "an-old-id" if by_id else first.sequence
    with pytest.raises(StateError, match="has no entry: its verdict was unique"):
        state.retract(reference, erase=False)
    assert state.retract(reference).sequence == last.sequence
    assert state.entry(last.sequence) is None
    parts = [page.evidence[at : at + 24] for at in range(16, len(page.evidence) - 24, 24)]
    kill(state)
    assert_gone(tmp_path, URL, TITLE, TEXT, "an-old-id", "the-present-id")
    assert not [part for part in parts if len(set(part)) > 8 and part in everywhere(tmp_path)]
    again = opened(tmp_path)
    assert [verdict.kind for verdict in again.decide([(secret(), None)])] == [VerdictKind.UNIQUE]
    with pytest.raises(StateError, match="was retracted already"):
        again.retract("the-present-id")
    again.close()


def test_a_page_without_an_entry_is_erased_too(tmp_path: Path) -> None:
    """A duplicate, and a page that was retracted before: the error says that there was no entry to remove."""
    state = opened(tmp_path)
    state.decide([(prepared("https://a.example/1", 7), None), (secret(), None)])
    with pytest.raises(StateError, match=r"its verdict was duplicate\. Its text, title and URL are erased"):
        state.retract(URL)
    assert_gone(tmp_path)
    state.decide([(secret(story=9), None)])
    state.retract(URL, erase=False)
    assert URL.encode() in readable(tmp_path)
    with pytest.raises(StateError, match=r"was retracted already, by record \d\. Its text, title and URL are erased"):
        state.retract(URL)
    assert_gone(tmp_path)
    state.close()


@pytest.mark.parametrize("erase", [False, True])
def test_a_delivery_that_was_retracted_is_decided_again(tmp_path: Path, erase: bool) -> None:
    """What comes again after a retraction is kept, whichever visit it was; its next copy is a duplicate of it."""
    state = opened(tmp_path)
    first, second = state.decide([(secret(), b"1" * 16), (secret(), b"2" * 16)])
    assert [first.kind, second.kind] == [VerdictKind.UNIQUE, VerdictKind.UNCHANGED]
    state.retract(URL, erase=erase)
    again = state.decide([(secret(), b"2" * 16), (secret("https://b.example/copy"), None), (secret(), b"1" * 16)])
    assert [one.kind for one in again] == [VerdictKind.UNIQUE, VerdictKind.DUPLICATE, VerdictKind.UNCHANGED]
    assert again[1].duplicate_of_url == URL
    assert state.decide([(secret(), b"2" * 16)]) == again[:1]
    state.close()
    opened(tmp_path).close()


def test_a_commit_that_ends_with_a_page_taken_down_is_read_again(tmp_path: Path) -> None:
    """The last record of a commit tells its journal from another one by nothing that a take-down erases."""
    state = opened(tmp_path)
    others(state, 100)
    state.decide([(secret(), b"1" * 16)])
    state.close()
    again = opened(tmp_path)
    again.retract(URL, erase=False)
    kill(again)
    opened(tmp_path).close()


def test_a_reader_that_keeps_the_write_ahead_file_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The page is gone once the reader has ended and the state is closed."""
    state = opened(tmp_path)
    state.decide([(secret(), None)])
    state.journal.database.connection.execute("PRAGMA busy_timeout = 0")
    reader: Database = open_read_only(tmp_path)
    with reader.reading() as connection:
        connection.execute("SELECT count(*) FROM log").fetchall()
        state.retract(URL)
    reader.close()
    assert "because it is being read" in caplog.text
    state.close()
    assert_gone(tmp_path)
