"""A state that is begun with bases decides as one run over their pages and its own, and never changes them."""

import random
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import fsspec
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup_service._native import PageStore, StoreLabel
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Fingerprint, Page, PreparedPage
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.base_labels import encode_labels
from dedup_service.runtime.embedded.database import ForeignStateError
from dedup_service.runtime.embedded.state import JOURNAL_FILE, State, StateSettings
from dedup_service.runtime.embedded.state_view import state_view
from dedup_service.runtime.store import stored_entries
from dedup_service.runtime.verdict_json import verdict_line
from tests.made_evidence import prepared_text

from .prepared import SPACE, SPACE_ID, STEP, kill, lose_pages, prepared

GUARDED = replace(rule_for(), guards=Guards(max_hosts=3, max_pages=9, max_titles=4))
CROWDED = StateSettings(IndexLayout(slots=1, window=8), snapshot_every=40)
U, D, SAME, NEW, NONE = VerdictKind

Record = PreparedPage | CorrectionRecord


def opened(
    folder: Path | None,
    *bases: Path | str,
    rule: MatchRule | None = None,
    keep: Keep | None = None,
    setting: StateSettings = CROWDED,
) -> State:
    """An open state."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    return State(folder, SPACE_ID, SPACE, rule, setting, (), keep, bases)


def apply(state: State, records: Sequence[Record], batch: int = 7) -> list[Verdict]:
    """The verdicts on the pages among records, some at a time."""
    verdicts: list[Verdict] = []
    pages: list[tuple[PreparedPage, None]] = []
    for record in records:
        if isinstance(record, CorrectionRecord):
            verdicts += state.decide(pages)
            pages = []
            state.correct(record)
        else:
            pages.append((record, None))
        if len(pages) == batch:
            verdicts += state.decide(pages)
            pages = []
    return verdicts + state.decide(pages)


def said(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Verdicts without what depends on where the page is in a log."""
    return [replace(verdict, sequence=0, duplicate_of_base=None) for verdict in verdicts]


def digests(folder: Path) -> dict[str, str]:
    """Checksum and time of each file below a folder; a folder's time says whether a file came and went."""
    return {
        str(path.relative_to(folder)): f"{path.stat().st_mtime_ns} "
        + (sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in [folder, *sorted(folder.rglob("*"))]
    }


@cache
def sentence(seed: str) -> str:
    """A sentence of 20 characters."""
    rng = random.Random(seed)
    return "".join(chr(rng.randrange(0x4E00, 0x9000)) for _ in range(20))


@cache
def story_page(url: str, host: int, story: int, version: int, title: int, claims: str | None = None) -> PreparedPage:
    """A story in the frame of a host; each version has other sentences, and 9 of 12 in common with the last one."""
    frame = [sentence(f"frame {host} {number}") for number in range(4)]
    common = [sentence("template") for _ in range(1)] + [sentence(f"template {number}") for number in range(3)]
    own = [sentence(f"story {story} {number + 2 * version}") for number in range(14)]
    folded = "。".join([*frame, *common, *own])
    heading = f"标题{title}{sentence(f'title {title}')}"
    body_hash = hash_of(folded)
    page = Page(url=url, canonical_url=url, id=f"id of {url}", title=heading, text=folded, claimed_url=claims)
    fingerprint = Fingerprint((story + 1) * STEP % (1 << 64) ^ version, hash_of(f"body {story}") ^ version)
    made = prepared_text(folded, heading)
    return PreparedPage(page, fingerprint, body_hash, made.evidence, None, hash_of(heading + folded), made.keys)


def hash_of(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "little")


def stream(seed: int, count: int) -> list[Record]:
    """Pages in frames, copies and versions on other hosts, visits, short pages, claims and corrections."""
    rng = random.Random(seed)
    records: list[Record] = []
    urls: list[str] = ["https://host0.example/0"]
    for number in range(count):
        host = rng.randrange(5)
        url = f"https://host{host}.example/{number}"
        if rng.random() < 0.2:
            url = rng.choice(urls)
        urls.append(url)
        story = rng.randrange(1 + count // 3)
        if rng.random() < 0.05:
            records.append(CorrectionRecord(rng.choice(urls), rng.choice(urls), rng.random() < 0.5, "said"))
        if rng.random() < 0.05:
            records.append(prepared(url, story, reason="fewer than 64 letters"))
            continue
        claims = rng.choice(urls) if rng.random() < 0.1 else None
        records.append(story_page(url, host, story, rng.choice([0, 0, 0, 1, 2]), rng.randrange(story + 3), claims))
    return records


def oracle(folder: Path | None, records: Sequence[Record], keep: Keep | None) -> list[Verdict]:
    """The verdicts of one run over all records."""
    with closing(opened(folder, rule=GUARDED, keep=keep)) as state:
        return apply(state, records)


@given(
    seed=st.integers(0, 10_000),
    count=st.integers(0, 160),
    split=st.floats(0, 1),
    again=st.floats(0, 1),
    keep=st.sampled_from([None, Keep(max_pages=30)]),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_verdicts_are_those_of_one_run(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, split: float, again: float, keep: Keep | None
) -> None:
    """Wherever the stream is split into base and crawl, and wherever the crawl is stopped; the base stays as it was."""
    folder = tmp_path_factory.mktemp("bases")
    records = stream(seed, count)
    at = int(split * len(records))
    middle = at + int(again * (len(records) - at))
    expected = said(oracle(None, records, keep))
    with closing(opened(folder / "base", rule=GUARDED, keep=keep)) as base:
        first = apply(base, records[:at])
    before = digests(folder / "base")
    with closing(opened(folder / "state", folder / "base")) as state:
        then = apply(state, records[at:middle])
    with closing(opened(folder / "state")) as state:
        last = apply(state, records[middle:])
    assert said([*first, *then, *last]) == expected
    assert digests(folder / "base") == before


def page(number: int, story: int | None = None, host: str = "a") -> PreparedPage:
    """The page at one of some addresses."""
    return prepared(f"https://{host}.example/{number}", number if story is None else story, page_id=f"{host}{number}")


def decide(state: State, *pages: PreparedPage) -> list[Verdict]:
    """The verdicts on pages without delivery ids."""
    return state.decide([(page, None) for page in pages])


def named(verdicts: Sequence[Verdict]) -> list[tuple[VerdictKind, str | None, str | None]]:
    """Of verdicts, the kind, the id of the original, and the base that has it."""
    return [(verdict.kind, verdict.duplicate_of, verdict.duplicate_of_base) for verdict in verdicts]


def base_of(folder: Path, *pages: PreparedPage, **options: Keep) -> Path:
    """A closed state with these pages."""
    with closing(opened(folder, **options)) as state:
        decide(state, *pages)
    return folder


def test_a_verdict_names_the_base_that_has_the_original(tmp_path: Path) -> None:
    """Copies and visits of its pages do, copies of the state's own pages do not; so does the stored verdict."""
    base = base_of(tmp_path / "base", *map(page, range(30)))
    pages = [page(1, host="b"), page(2, 99), page(3), page(50), page(50, host="b"), page(2, 99), page(29, host="b")]
    name = str(base)
    expected = [
        (D, "a1", name), (NEW, "a2", name), (SAME, "a3", name), (U, None, None), (D, "a50", None), (SAME, "a2", None),
        (D, "a29", name),
    ]  # fmt: skip
    with closing(opened(tmp_path / "state", base)) as state:
        deliveries = [(one, bytes([number]) * 16) for number, one in enumerate(pages)]
        verdicts = state.decide(deliveries)
        assert named(verdicts) == expected
        assert state.decide(deliveries) == verdicts
    with closing(opened(tmp_path / "state")) as state:
        assert state.decide(deliveries) == verdicts
        assert state.journal.log.verdict_at(verdicts[0].sequence) == verdicts[0]
    lines = [msgspec.json.decode(verdict_line(verdict)) for verdict in verdicts]
    assert [line.get("duplicate_of_base", 0) for line in lines] == [name, name, name, 0, 0, 0, name]


def test_the_temporary_folder_of_a_state_in_memory_is_kept_small(tmp_path: Path) -> None:
    """It is committed as a state folder is, and what expired can leave it; the state goes on."""
    state = opened(tmp_path / "base")
    apply(state, [prepared("https://a.example/0", 0)])
    state.close()
    state = opened(None, tmp_path / "base", keep=Keep(max_pages=20))
    folder, entries, commits = state._bases.scratch, state._entries, state._commits
    assert folder is not None
    assert entries is not None
    assert commits is not None
    for first in range(1, 400, 50):
        apply(state, [prepared(f"https://a.example/{story}", story) for story in range(first, min(first + 50, 400))])
        commits.wait()  # a commit is begun after 40 records, unless one is under way
    assert entries.sequence > 300

    def evidence_bytes() -> int:
        return 512 * (folder / "pages" / "evidence").stat().st_blocks

    before = (folder / "pages" / "evidence").stat().st_size
    state.compact(lambda *_: None)
    assert 0 < evidence_bytes() < before / 5
    copies = [prepared(f"https://b.example/{story}", story) for story in (1, 390)]
    assert [verdict.kind for verdict in apply(state, copies)] == [U, D]
    state.close()
    assert not folder.exists()


def test_a_base_may_go_while_it_is_used(tmp_path: Path) -> None:
    """What is open stays readable; the next opening says what is missing, and finds the base at another place."""
    base = base_of(tmp_path / "base", *map(page, range(60)))
    state = opened(tmp_path / "state", base)
    base.rename(tmp_path / "moved")
    assert named(decide(state, page(1, host="b"))) == [(D, "a1", str(base))]
    state.close()
    with pytest.raises(ConfigurationError, match="give its new place with --base"):
        opened(tmp_path / "state")
    before = digests(tmp_path / "moved")
    lose_pages(tmp_path / "state")
    for bases in ([tmp_path / "moved"], []):
        with closing(opened(tmp_path / "state", *bases)) as state:
            assert named(decide(state, page(1, host="b"))) == [(D, "a1", str(tmp_path / "moved"))]
    assert digests(tmp_path / "moved") == before


def test_a_base_in_use_counts_as_of_its_last_commit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A warning says what does not count; as the base goes on, its names stay right, and then it is another base."""
    running = opened(tmp_path / "base")
    decide(running, *map(page, range(60)))
    running._commits.take(running._decider)  # type: ignore[union-attr]
    decide(running, *map(page, range(60, 65)))
    state = opened(tmp_path / "state", tmp_path / "base")
    assert "has 5 records after its last commit, which do not count" in caplog.text
    copies = [page(1, host="b"), page(59, host="b"), page(60, host="b")]
    decide(running, *map(page, range(65, 70)))
    assert named(decide(state, *copies)) == [
        (D, "a1", str(tmp_path / "base")),
        (D, "a59", str(tmp_path / "base")),
        (U, None, None),
    ]
    running.close()
    assert named(decide(state, page(2, host="c"))) == [(D, "a2", str(tmp_path / "base"))]
    state.close()
    with pytest.raises(StateError, match=r"was at record 60 and is at 70\. Give a copy of it as it was"):
        opened(tmp_path / "state")


def test_a_base_that_is_written_after_it_was_opened_is_read_from_a_copy(tmp_path: Path) -> None:
    """Its file may have been opened as one that does not change."""
    base = base_of(tmp_path / "base", *map(page, range(60)))
    with closing(opened(tmp_path / "state", base)) as state:
        base_of(base, *map(page, range(60, 200)))
        assert named(decide(state, page(1, host="b"))) == [(D, "a1", str(base))]


def test_two_states_use_a_base_at_once(tmp_path: Path) -> None:
    """Each has its own pages beside those of the base, and neither sees the other's."""
    base = base_of(tmp_path / "base", *map(page, range(60)))
    before = digests(base)
    one, other = opened(tmp_path / "one", base), opened(tmp_path / "other", base)
    assert named(decide(one, page(70), page(1, 98))) == [(U, None, None), (NEW, "a1", str(base))]
    assert named(decide(other, page(70, host="b"), page(1))) == [(U, None, None), (SAME, "a1", str(base))]
    one.close()
    other.close()
    assert digests(base) == before


def test_a_state_with_a_base_is_a_base(tmp_path: Path) -> None:
    """Pages of the base's base are found and named as those of the base that was given."""
    first = base_of(tmp_path / "first", *map(page, range(60)))
    with closing(opened(tmp_path / "second", first)) as state:
        decide(state, *map(page, range(60, 90)))
    before = digests(first), digests(tmp_path / "second")
    with closing(opened(tmp_path / "third", tmp_path / "second")) as state:
        found = decide(state, page(1, host="b"), page(61, host="b"))
    assert named(found) == [(D, "a1", str(tmp_path / "second")), (D, "a61", str(tmp_path / "second"))]
    assert (digests(first), digests(tmp_path / "second")) == before


def test_of_several_bases_the_first_one_has_the_original(tmp_path: Path) -> None:
    """Pages of all are found, settled or not, before and after the state is opened again; none of them changes."""
    one = base_of(tmp_path / "one", *map(page, range(40)))
    other = base_of(tmp_path / "other", *[page(number, host="b") for number in range(20, 70)])
    before = digests(one), digests(other)
    pages = [page(number, host="c") for number in (1, 25, 39, 41, 69)] + [page(50, 98, host="b")]
    expected = [(D, f"a{number}", str(one)) for number in (1, 25, 39)]
    expected += [(D, "b41", str(other)), (D, "b69", str(other)), (NEW, "b50", str(other))]
    with closing(opened(tmp_path / "state", one, other)) as state:
        assert state.held().size()[0] == 90
        assert named(decide(state, *pages[:3])) == expected[:3]
    with closing(opened(tmp_path / "state", one, other)) as state:
        assert named(decide(state, *pages[3:])) == expected[3:]
        assert state.held().size()[0] == state.journal.entries == 90
    assert (digests(one), digests(other)) == before


def test_pages_of_a_base_expire_for_the_state_alone(tmp_path: Path) -> None:
    """They are the earliest; those that expired in the base are gone."""
    base = base_of(tmp_path / "base", *map(page, range(30)), keep=Keep(max_pages=20))
    before = digests(base)
    with closing(opened(tmp_path / "state", base)) as state:
        assert named(decide(state, page(9, host="b"), page(12, host="b"))) == [(U, None, None), (D, "a12", str(base))]
        decide(state, *map(page, range(100, 115)))
        assert named(decide(state, page(12, host="c"))) == [(U, None, None)]
    assert digests(base) == before


def test_a_take_down_of_a_page_in_a_base_is_refused(tmp_path: Path) -> None:
    """A correction counts for the state alone, also one that removes such a page; so does a compaction."""
    base = base_of(tmp_path / "base", *map(page, range(30)))
    before = digests(base)
    with closing(opened(tmp_path / "state", base)) as state:
        with pytest.raises(StateError, match=r"is kept in the base .*base, which this state does not change"):
            state.retract("https://a.example/3")
        state.correct(CorrectionRecord("https://a.example/4", "https://a.example/5", True, "said"))
        assert named(decide(state, page(4, host="b"), page(4, 97))) == [(U, None, None), (D, "a5", str(base))]
        decide(state, *[page(number, 200 + number) for number in range(8, 30)])
        state.retract("https://a.example/9")
        state.compact(lambda *_: None)
    with closing(opened(tmp_path / "state")) as state:
        found = decide(state, page(3, host="c"), page(5, host="c"), page(7, 297, host="c"), page(10, 210, host="c"))
    assert named(found) == [(D, "a3", str(base)), (D, "a5", str(base)), (U, None, None), (D, "a10", None)]
    assert digests(base) == before


def take_down(base: Path, *numbers: int, compact: bool = False) -> None:
    """Take pages down in a closed state; compact: give their space back, too."""
    with closing(opened(base)) as state:
        for number in numbers:
            state.retract(f"a{number}")
        if compact:
            state.compact(lambda *_: None)


def test_what_is_taken_down_in_a_base_is_absent_at_once(tmp_path: Path) -> None:
    """From a running state: copies, near copies and visits; one that it keeps itself by then stays."""
    base = base_of(tmp_path / "base", *map(page, range(60)))
    with closing(opened(tmp_path / "state", base)) as state:
        assert named(decide(state, page(5, 205))) == [(NEW, "a5", str(base))]
        take_down(base, 3, 4, 5, 6, 58)
        copies = [page(3, host="b"), page(58, host="b"), prepared("https://b.example/4", 4, version=1), page(6, 99)]
        assert named(decide(state, *copies)) == [(U, None, None)] * 4
        others = [page(number, host="c") for number in range(60) if number not in {3, 4, 5, 6, 58}]
        assert {verdict.duplicate_of_base for verdict in decide(state, *others)} == {str(base)}
        assert named(decide(state, page(3, host="d"), page(205, host="d"))) == [(D, "b3", None), (D, "a5", None)]
        take_down(base, 7, compact=True)
        take_down(base, 8)
        assert named(decide(state, page(7, host="b"), page(8, host="b"))) == [(U, None, None)] * 2
        assert state.journal.entries == state.held().size()[0] == 60


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("inner", [False, True])
def test_a_base_that_lost_pages_alone_is_the_same_base(compact: bool, inner: bool, tmp_path: Path) -> None:
    """A state that is closed or killed meanwhile goes on without these pages; so does a base of the base."""
    base = given = base_of(tmp_path / "base", *map(page, range(60)))
    if inner:
        with closing(opened(given := tmp_path / "outer", base)) as state:
            decide(state, page(300))
    with closing(opened(tmp_path / "state", given)) as state:
        decide(state, *map(page, range(100, 130)))
    state = opened(tmp_path / "state")
    decide(state, page(5, 205), page(130))
    kill(state)
    take_down(base, 3, 5, 6, 58, compact=compact)
    with state_view(tmp_path / "state") as view:  # of what a command reads, before the state follows
        settled = {entry.sequence for entries in view.live_rows() for entry in entries}
    assert settled >= {2, 8}
    assert not settled & {4, 6, 7}
    for _ in range(2):
        with closing(opened(tmp_path / "state")) as state:
            assert state.journal.entries == state.held().size()[0] == 60 + inner + 31 - 3
            found = decide(state, *[page(number, host="b") for number in (1, 7, 57, 59, 100, 205)])
        assert [verdict.duplicate_of for verdict in found] == ["a1", "a7", "a57", "a59", "a100", "a5"]
    with closing(opened(tmp_path / "state")) as state:
        copies = [page(3, host="c"), page(58, host="c"), prepared("https://c.example/6", 6, version=1)]
        assert named(decide(state, *copies)) == [(U, None, None)] * 3
    with closing(opened(tmp_path / "new", given)) as state:
        assert named(decide(state, page(3), page(58, host="b"), page(7))) == [(U, None, None)] * 2 + [
            (SAME, "a7", str(given))
        ]


@pytest.mark.parametrize("settled", [1, 59])
def test_a_state_that_only_loses_pages_of_its_base_opens_again(settled: int, tmp_path: Path) -> None:
    """It adds no record then, so its last commit stays the one that has these pages."""
    base = base_of(tmp_path / "base", *map(page, range(60)))
    with closing(opened(tmp_path / "state", base)) as state:
        decide(state, page(300))
    take_down(base, settled)
    for _ in range(3):
        with closing(opened(tmp_path / "state")) as state:
            assert state.journal.entries == state.held().size()[0] == 60
    with closing(opened(tmp_path / "state")) as state:
        assert named(decide(state, page(settled, host="b"))) == [(U, None, None)]


@pytest.mark.parametrize("bases", [1, 2])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_base_may_lose_pages_while_a_state_opens(
    bases: int, is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are absent, as if it had lost them before."""
    base = base_of(tmp_path / "base", *map(page, range(60)))
    given = [base, base_of(tmp_path / "second", *map(page, range(500, 560)))][:bases]
    if not is_new:
        opened(tmp_path / "state", *given).close()
    original = stored_entries.open_or_create

    def slow(folder: Path, label: StoreLabel) -> PageStore:
        store = original(folder, label)
        if folder.is_relative_to(tmp_path / "state"):
            monkeypatch.undo()
            take_down(base, 3, 58, compact=True)
        return store

    monkeypatch.setattr(stored_entries, "open_or_create", slow)
    with closing(opened(tmp_path / "state", *given)) as state:
        copies = decide(state, *[page(number, host="b") for number in (3, 58, 4, 57)])
        assert named(copies) == [(U, None, None)] * 2 + [(D, "a4", str(base)), (D, "a57", str(base))]
        assert state.journal.entries == state.held().size()[0] == 60 * bases
    for _ in range(2):
        with closing(opened(tmp_path / "state", *given)) as state:
            assert state.journal.entries == state.held().size()[0] == 60 * bases


def test_bases_of_a_state_stay_the_same(tmp_path: Path) -> None:
    """A state cannot be given one later, nor another one, nor itself, nor one twice."""
    base, other = base_of(tmp_path / "base", page(1)), base_of(tmp_path / "other", page(2))
    plain = base_of(tmp_path / "plain", page(3))
    with closing(opened(tmp_path / "state", base)):
        pass
    for folder, bases, message in [
        (plain, [base], "was begun without bases, and cannot be given any later"),
        (tmp_path / "state", [other], "other is another one: give that"),
        (tmp_path / "state", [base, other], "was begun with the bases .*base: give these, in this order"),
        (tmp_path / "new", [tmp_path / "new"], "is the state itself"),
        (base / "new", [base], "is in the folder of the base"),
        (tmp_path / "new", [base, f"{base}/../base"], "are one state: give it once"),
        (tmp_path / "new", [tmp_path / "nothing"], "is no folder: give the folder of a state"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            opened(folder, *bases)
    with closing(opened(tmp_path / "new", base)) as state:  # what was refused has left nothing
        assert named(decide(state, page(1, host="b"))) == [(D, "a1", str(base))]


def test_a_base_of_something_else_is_refused(tmp_path: Path) -> None:
    """Another space, no state, the state of the service: the message says what to do."""
    base = base_of(tmp_path / "base", page(1))
    (tmp_path / "empty").mkdir()
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "instance").touch()
    with pytest.raises(ForeignStateError, match="was made in space test-space, the pages would come in space other"):
        State(None, "other", SPACE, bases=[base])
    with pytest.raises(ForeignStateError, match="open it with the space and the release that it was made in"):
        State(base, "other", SPACE)
    with pytest.raises(StateError, match="holds no twinsieve state"):
        opened(None, tmp_path / "empty")
    with pytest.raises(ForeignStateError, match="holds a state of the Kafka service"):
        opened(None, tmp_path / "service")


@pytest.mark.parametrize("bases", ["[]}", '[{"name": 1}]', "[" * 100_000, "itself"])
def test_a_journal_with_hostile_bases_is_refused(bases: str, tmp_path: Path) -> None:
    """Also one that names itself as its base."""
    base = base_of(tmp_path / "base", *map(page, range(9)))
    second = tmp_path / "second"
    with closing(opened(second, base)) as state:
        labels = state.journal.log.bases
    text = encode_labels([msgspec.structs.replace(labels[0], folder=str(second))]) if bases == "itself" else bases
    with closing(sqlite3.connect(second / JOURNAL_FILE, isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'bases'", (text,))
    with pytest.raises(StateError, match=r"does not say which bases it has|was itself begun with the base"):
        opened(None, second)


@pytest.mark.parametrize("name", ["rows", "evidence", "places", "manifest"])
@pytest.mark.parametrize("change", ["missing", "flipped", "zeros"])
def test_a_damaged_base_is_refused(name: str, change: str, tmp_path: Path) -> None:
    """It is left as it is, and so is a state that was begun with it; once it is whole again, the state goes on.

    Evidence, and where it is, is read only when pages are compared by it.
    """
    base = base_of(tmp_path / "base", *map(page, range(60)))
    with closing(opened(tmp_path / "state", base)) as state:
        decide(state, page(70))
    path = base / "pages" / name
    content = path.read_bytes()
    path.unlink()
    if change == "zeros":
        path.write_bytes(bytes(len(content)))
    if change == "flipped":
        path.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    before = digests(base)
    for folder, bases in [("new", [base]), ("state", [])]:
        with pytest.raises(StateError):
            decide(opened(tmp_path / folder, *bases), *[page(number, host="b") for number in range(60)])
    assert digests(base) == before
    path.write_bytes(content)
    for folder in ("new", "state"):
        with closing(opened(tmp_path / folder, base)) as state:
            assert named(decide(state, page(1, host="c"))) == [(D, "a1", str(base))]


@pytest.mark.parametrize("address", ["file://{}/base", "memory://{}/base"])
def test_a_base_at_an_address_is_downloaded_once(address: str, tmp_path: Path) -> None:
    """The state has it then; it is not asked for again."""
    base, address = base_of(tmp_path / "base", *map(page, range(60))), address.format(tmp_path)
    if address.startswith("memory"):
        fsspec.filesystem("memory").put(str(base), f"{tmp_path}/base", recursive=True)
    before = digests(base)
    with closing(opened(tmp_path / "state", address)) as state:
        assert named(decide(state, page(1, host="b"))) == [(D, "a1", address)]
    assert digests(base) == before
    base.rename(tmp_path / "gone")
    fsspec.filesystem("memory").rm("/", recursive=True)
    for bases in ([address], []):
        with closing(opened(tmp_path / "state", *bases)) as state:
            assert named(decide(state, page(2, host="b"))) == [(D, "a2", address)]
    with pytest.raises(StateError, match=r"holds no twinsieve state"):
        opened(None, address)


def test_a_base_with_a_base_is_no_address(tmp_path: Path) -> None:
    """What is there has not the pages of its own base; the message says how to have both here."""
    base = base_of(tmp_path / "base", *map(page, range(60)))
    with closing(opened(tmp_path / "outer", base)) as state:
        decide(state, page(300))
    with pytest.raises(StateError, match=r"was itself begun with a base: copy both to folders here, open the copy"):
        opened(tmp_path / "state", f"file://{tmp_path}/outer")
    shutil.copytree(base, tmp_path / "here" / "base")
    shutil.copytree(tmp_path / "outer", tmp_path / "here" / "outer", symlinks=True)
    base.rename(tmp_path / "gone")
    opened(tmp_path / "here" / "outer", tmp_path / "here" / "base").close()
    with closing(opened(tmp_path / "state", tmp_path / "here" / "outer")) as state:
        assert {verdict.kind for verdict in decide(state, page(1, host="b"), page(300, host="b"))} == {D}
