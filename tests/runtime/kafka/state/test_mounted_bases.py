"""A log that is begun with bases is decided as one run over their pages and its own, and never changes them."""

import re
import shutil
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import fsspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dedup_service.core.decision.replica import ReplicaState
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    LogRecord,
    PageRecord,
    Policy,
    PolicyRecord,
    Source,
    UnwrittenRecord,
    first_offset,
)
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.verdict import Action, Verdict
from dedup_service.runtime.embedded.bases import download_base
from dedup_service.runtime.embedded.state import JOURNAL_FILE, StateSettings
from dedup_service.runtime.kafka.messages.verdict import read_verdict
from dedup_service.runtime.kafka.state.local_state import NAMES_FILE, PAGES_FOLDER, LocalState
from dedup_service.runtime.kafka.state.mounted_bases import (
    BASES_FOLDER,
    BaseUnusableError,
    MountedBases,
    offered_bases,
    require_bases,
)
from dedup_service.runtime.kafka.state.restore import restore
from dedup_service.runtime.store.page_files import MANIFEST
from tests.runtime.embedded.prepared import SPACE_ID
from tests.runtime.embedded.test_bases import (
    CROWDED,
    GUARDED,
    Record,
    apply,
    digests,
    opened,
    oracle,
    said,
    story_page,
    stream,
)

from .list_log import ListLog

LOG = "a-log"


@dataclass(frozen=True)
class Ran:
    """A replica at the end of a log: the verdicts that are to be written, in order, and its state."""

    verdicts: list[Verdict]
    state: ReplicaState


def made(folder: Path, records: Sequence[Record], keep: Keep | None = None, setting: StateSettings = CROWDED) -> Path:
    """A closed state with the pages of these records."""
    with closing(opened(folder, rule=GUARDED, keep=keep, setting=setting)) as state:
        apply(state, records)
    return folder


def first_with(given: dict[str, str], folder: Path) -> PolicyRecord:
    """The first record of a log that is begun with these bases."""
    offer = offered_bases(given, folder / BASES_FOLDER, SPACE_ID)
    policy = Policy(offer.rule, Action.FLAG, SPACE_ID, offer.layout, offer.keep, bases=offer.bases)
    return PolicyRecord(policy, initial=True, log=LOG)


def log_of(first: PolicyRecord, records: Sequence[Record]) -> list[LogRecord]:
    """A log with these pages and corrections."""
    return [
        first,
        *(
            record if not hasattr(record, "page") else PageRecord(Source("pages", 0, place), record, SPACE_ID)
            for place, record in enumerate(records)
        ),
    ]


def run(folder: Path, records: Sequence[LogRecord], given: dict[str, str], *, snapshot: bool = False) -> "Ran":
    """A replica at the end of a log, as a process restores it in a folder that is closed again."""
    first = records[0]
    assert isinstance(first, PolicyRecord)
    log = ListLog(records, together=True, first=first_offset(first.policy.based_on))
    with (
        LocalState.open(folder) as local,
        closing(MountedBases.open(first.policy.bases, given, folder / BASES_FOLDER, SPACE_ID)) as bases,
    ):
        restored = restore(local, log, {}, stop=threading.Event(), bases=bases)
        assert restored is not None
        if snapshot:
            local.take_snapshot(restored.replica, restored.pending_outcomes, restored.tail)
        found = [read_verdict(outcome.value)[0] for _, outcome in restored.pending_outcomes.items()]
        return Ran(sorted(found, key=lambda verdict: verdict.sequence), restored.replica.state())


@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(0, 120),
    split=st.floats(0, 1),
    cut=st.floats(0, 1),
    most=st.none() | st.integers(1, 40),
    names_lost=st.booleans(),
    lost=st.booleans(),
)
def test_verdicts_are_those_of_one_run(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    split: float,
    cut: float,
    most: int | None,
    names_lost: bool,
    lost: bool,
) -> None:
    """But for sequences and the base's name, wherever the process is restarted, with its snapshot, or without."""
    keep = None if most is None else Keep(max_pages=most)
    folder, records = tmp_path_factory.mktemp("bases"), stream(seed, count)
    border = int(split * len(records))
    made(folder / "corpus", records[:border], keep)
    before, given = digests(folder / "corpus"), {"corpus": str(folder / "corpus")}
    log = log_of(first_with(given, folder), records[border:])
    own = folder / "service"
    run(own, log[: 1 + int(cut * len(log))], given, snapshot=True)
    if names_lost:
        (own / NAMES_FILE).unlink(missing_ok=True)
    if lost:
        shutil.rmtree(own / PAGES_FOLDER)
    found = run(own, log, given, snapshot=True).verdicts
    expected = oracle(folder / "oracle" if count % 2 else None, records, keep)
    assert said(found) == said(expected[len(expected) - len(found) :])
    assert len(found) == sum(isinstance(record, PageRecord) for record in log)
    in_base = {verdict.id for verdict in expected[: len(expected) - len(found)]}
    assert {verdict.duplicate_of_base for verdict in found if verdict.duplicate_of is not None} <= {None, "corpus"}
    assert all(verdict.duplicate_of in in_base for verdict in found if verdict.duplicate_of_base)
    assert digests(folder / "corpus") == before


def test_a_base_that_is_not_as_the_log_says_is_named(tmp_path: Path) -> None:
    """One that is missing, not given, of another state or commit, or damaged; and one that was not asked for."""
    corpus = made(tmp_path / "corpus", stream(3, 20))
    other = made(tmp_path / "other", stream(4, 20))
    expected = first_with({"corpus": str(corpus)}, tmp_path).policy

    def problem(**given: Path) -> str:
        places = {name: str(place) for name, place in given.items()}
        with pytest.raises(BaseUnusableError) as caught:
            MountedBases.open(expected.bases, places, tmp_path / BASES_FOLDER, SPACE_ID)
        return str(caught.value)

    assert problem() == "base corpus: not given; give it with --base corpus=FOLDER"
    lost = problem(corpus=tmp_path / "nowhere")
    assert lost.startswith("base corpus: the base corpus is no folder")
    assert lost.endswith(f"(given here: {tmp_path / 'nowhere'})")
    assert re.fullmatch(
        r"base corpus: state \S+ expected, \S+ found in \S+/other: it is another one", problem(corpus=other)
    )
    copy = shutil.copytree(corpus, tmp_path / "copy")
    MountedBases.open(expected.bases, {"corpus": str(copy)}, tmp_path / BASES_FOLDER, SPACE_ID).close()
    with closing(opened(copy)) as state:
        apply(state, stream(5, 3))
    assert re.match(
        r"base corpus: record \d+ \(\w+\) expected, \d+ \(\w+\) found in .*more than retractions", problem(corpus=copy)
    )
    (copy / "pages" / MANIFEST).write_bytes(b"{}")
    assert problem(corpus=copy).startswith("base corpus: ")
    with pytest.raises(ConfigurationError, match="begun with the bases corpus, and cannot be given more any later"):
        require_bases(expected, {"corpus": str(corpus), "more": str(other)})
    with pytest.raises(ConfigurationError, match="begun without bases"):
        require_bases(replace(expected, bases=()), {"corpus": str(corpus)})


def test_one_state_under_two_names_is_refused(tmp_path: Path) -> None:
    """Its pages would be there twice."""
    corpus = str(made(tmp_path / "corpus", stream(3, 20)))
    with pytest.raises(ConfigurationError, match="the bases a and b are one state"):
        offered_bases({"a": corpus, "b": corpus}, tmp_path / BASES_FOLDER, SPACE_ID)


@pytest.mark.parametrize("compact", [False, True])
def test_a_base_that_has_retracted_pages_is_the_same_base(tmp_path: Path, compact: bool) -> None:
    """They are absent from the next start on, also in a copy from an address that is downloaded again."""
    records = [story_page(f"https://a.example/{at}", 0, at, 0, at) for at in range(60)]
    corpus = made(tmp_path / "corpus", records, setting=StateSettings(IndexLayout(slots=8, window=8)))
    given, address = {"corpus": str(corpus)}, f"file://{corpus}"
    copies = [story_page(f"https://b.example/{at}", 1, at, 0, at) for at in range(60)]
    first, *pages = log_of(first_with(given, tmp_path), copies)
    assert isinstance(first, PolicyRecord)
    log = [first, *pages[:10], UnwrittenRecord((4, 31, 60), "retracted in a base"), *pages[10:]]
    for folder, place in (("own", str(corpus)), ("remote", address)):
        run(tmp_path / folder, log[:11], {"corpus": place}, snapshot=True)
    with closing(opened(corpus)) as state:
        for at in (3, 30, 59):
            state.retract(f"https://a.example/{at}")
        if compact:
            state.compact(lambda *_: None)
    shutil.rmtree(tmp_path / "remote" / BASES_FOLDER / "1")
    with closing(MountedBases.open(first.policy.bases, given, tmp_path / BASES_FOLDER, SPACE_ID)) as bases:
        assert bases.retracted() == {4, 31, 60}
    for folder, place in (("own", str(corpus)), ("remote", address), ("fresh", str(corpus))):
        found = run(tmp_path / folder, log, {"corpus": place}).verdicts
        unique = {verdict.url for verdict in found if verdict.duplicate_of is None}
        early = {"https://b.example/3"} if folder == "fresh" else set[str]()  # decided before, but for a new process
        assert unique == {"https://b.example/30", "https://b.example/59"} | early


def test_a_base_may_have_a_base(tmp_path: Path) -> None:
    """Names of the inner one are found, through a restart; verdicts name the base that the log has."""
    records = stream(13, 120)
    made(tmp_path / "inner", records[:40])
    with closing(opened(tmp_path / "corpus", tmp_path / "inner")) as state:
        apply(state, records[40:80])
    given = {"corpus": str(tmp_path / "corpus")}
    log = log_of(first_with(given, tmp_path), records[80:])
    run(tmp_path / "own", log[:20], given, snapshot=True)
    found = run(tmp_path / "own", log, given).verdicts
    expected = oracle(tmp_path / "oracle", records, None)
    assert said(found) == said(expected[len(expected) - len(found) :])
    assert {verdict.duplicate_of_base for verdict in found} == {None, "corpus"}


def test_a_base_at_an_address_is_downloaded_once(tmp_path: Path) -> None:
    """Another base under the address is not downloaded, so that the right one is, later."""
    records = stream(9, 60)
    corpus, other = made(tmp_path / "corpus", records[:40]), made(tmp_path / "other", records[:20])
    address, files = "memory://mounted/corpus", fsspec.filesystem("memory")
    log = log_of(first_with({"corpus": str(corpus)}, tmp_path), records[40:])
    expected = run(tmp_path / "fresh", log, {"corpus": str(corpus)})
    files.put(str(other), address, recursive=True)
    with pytest.raises(BaseUnusableError, match=r"expected, record .* found in memory://"):
        run(tmp_path / "own", log, {"corpus": address})
    files.rm(address, recursive=True)
    with pytest.raises(BaseUnusableError, match="expected, nothing found"):
        run(tmp_path / "own", log, {"corpus": address})
    assert [path.name for path in (tmp_path / "own" / BASES_FOLDER).iterdir()] == ["scratch"]
    files.put(str(corpus), address, recursive=True)
    try:
        assert run(tmp_path / "own", log[:9], {"corpus": address}, snapshot=True).verdicts
    finally:
        files.rm(address, recursive=True)
    assert run(tmp_path / "own", log, {"corpus": address}).verdicts == expected.verdicts


def test_a_long_start_tells_of_its_progress(tmp_path: Path) -> None:
    """Bytes of a download, pages that are entered, and rows of which tables are built."""
    records = stream(9, 60)
    one, two = made(tmp_path / "one", records[:30]), made(tmp_path / "two", records[30:])
    given, told = {"one": f"file://{one}", "two": str(two)}, list[str]()

    def report(what: str, done: int, total: int) -> None:
        told.append(what)
        assert done <= total or not total

    first = first_with(given, tmp_path)
    bases = MountedBases.open(first.policy.bases, given, tmp_path / "own" / BASES_FOLDER, SPACE_ID, report)
    with closing(bases), LocalState.open(tmp_path / "own") as local:
        local.pages.report = report
        restore(local, ListLog([first], first=first_offset(first.policy.based_on)), {}, bases=bases)
    assert list(dict.fromkeys(told)) == [
        f"downloading MB of file://{one}",
        "entering pages of base two",
        "building tables",
    ]


def test_finished_files_of_a_download_are_kept(tmp_path: Path) -> None:
    """An interrupted one goes on with the others, as long as the base is the same."""
    corpus = made(tmp_path / "corpus", stream(9, 200))
    (corpus / JOURNAL_FILE).rename(tmp_path / "journal")
    with pytest.raises(StateError, match="holds no twinsieve state"):
        download_base(f"file://{corpus}", tmp_path / "copy")
    before = digests(corpus / PAGES_FOLDER)
    for path in (corpus / PAGES_FOLDER).iterdir():
        if path.name != MANIFEST:
            path.unlink()
    (tmp_path / "journal").rename(corpus / JOURNAL_FILE)
    download_base(f"file://{corpus}", tmp_path / "copy")
    assert {path.name for path in (tmp_path / "copy" / PAGES_FOLDER).iterdir()} == before.keys() - {"."}


def test_files_of_a_base_that_are_missing_or_altered_end_the_process(tmp_path: Path) -> None:
    """The manifest is as it was, so this is found when they are read; the error names the file."""
    records = stream(9, 200)
    given = {"corpus": str(made(tmp_path / "corpus", records[:150]))}
    log = log_of(first_with(given, tmp_path), records[150:])
    rows = tmp_path / "corpus" / "pages" / "rows"
    content = rows.read_bytes()
    rows.unlink()
    with pytest.raises(StateError, match=rows.name):
        run(tmp_path / "own", log, given)
    rows.write_bytes(bytes(len(content)))
    with pytest.raises(StateError, match=rows.name):
        run(tmp_path / "own", log, given)
    rows.write_bytes(content)
    assert run(tmp_path / "own", log, given).verdicts == run(tmp_path / "fresh", log, given).verdicts
