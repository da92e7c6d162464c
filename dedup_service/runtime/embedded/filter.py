"""The near-duplicate filter in one process, without a broker: pages in, verdicts out, state on local disk.

    with NearDuplicateFilter.open("state") as dedup:
        verdict = dedup.check_html(html, url)

`NearDuplicateFilter` is the public class; `FilterView` is what twinsieve's own interfaces ask of an open filter.

Invariants: a verdict is returned only once it is durable. Killed at any instant, the filter opens again with every
verdict that it returned. A delivery that is repeated byte for byte gets the verdict it had as long as its record is
kept (`deletion`), so a run that is repeated completes itself. Every call is one transaction, which is why batches are
fast. Calls from several threads take turns.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.errors import ConfigurationError, RecordError
from dedup_service.core.extraction import extract, to_page
from dedup_service.core.fingerprinter import Fingerprinter
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.space import Space
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.embedded.database import Access, Database
from dedup_service.runtime.embedded.folder import FolderKind, StateLock, made_folder, refuse_other_kind
from dedup_service.runtime.embedded.frames import extracted, pages_of
from dedup_service.runtime.embedded.state import JOURNAL_FILE, SNAPSHOT_EVERY, TEXT_BUDGET_BYTES, State, StateSettings
from dedup_service.runtime.embedded.state_info import StateInfo, read_info
from dedup_service.runtime.events import IndexEvent, Observer
from dedup_service.runtime.memory_limit import ProcessMemoryLimit
from dedup_service.runtime.readers.arrow_rows import require_pyarrow
from dedup_service.runtime.readers.jsonlines import line_of, page_of
from dedup_service.runtime.resources import SpaceOptions, build_fingerprinter, profile_named
from dedup_service.runtime.verdict_json import verdict_rows, verdict_schema

INDEXED_BITS = 64
_DIGEST_BYTES = 16  # blake2b: pages have untrusted authors, who must not be able to make two deliveries collide


class NearDuplicateFilter:
    """A streaming near-duplicate filter with its state in a folder.

    Open it with `open`. A filter can be used from several threads; calls take turns. One with a folder belongs to its
    process: in a fork it raises StateClosedError.

    Example:
        ```python
        with NearDuplicateFilter.open("state") as dedup:
            for url, html in fetched:
                verdict = dedup.check_html(html, url)
                if verdict.kind is VerdictKind.DUPLICATE:
                    print(url, "repeats", verdict.duplicate_of_url)
        ```
    """

    def __init__(self, options: SpaceOptions | None, state: State, folder: Path | None, lock: StateLock | None) -> None:
        self._options = options
        self._state = state
        self._folder = folder
        self._lock = lock
        self._turn = threading.Lock()
        self._view = FilterView(state, folder, options, self._turn)

    @classmethod
    def open(
        cls,
        path: str | Path | None,
        *,
        space: SpaceOptions | None = None,
        rule: MatchRule | str | Path | None = None,
        keep: Keep | str | None = None,
        text_budget_bytes: int = TEXT_BUDGET_BYTES,
        snapshot_every: int = SNAPSHOT_EVERY,
        journal_days: float | None = None,
        max_memory_bytes: int | None = None,
        observers: Iterable[Observer] = (),
        bases: Sequence[str | Path] = (),
    ) -> Self:
        """Open a state folder, or create it.

        Args:
            path: The state folder; created if it does not exist. None keeps the state in memory.
            space: How fingerprints are made. None is the default space. A folder belongs to one space.
            rule: The match rule, or what `--profile` takes: a name ("precise") or the path of a file. None keeps the
                rule of the state, or starts with the default one. Another rule is recorded in the state and applies to
                the pages from here on.
            keep: How many kept pages later ones are compared with, and for how long: `Keep(max_pages=100_000_000)`, or
                text as `--keep` takes it ("90d,100000000", "all"). The earliest pages expire. None keeps the bounds
                of the state; a new state keeps all. Other bounds are recorded in the state, as a rule is.
            text_budget_bytes: Size of the compressed main texts that are kept for explanations, by default 256 MiB. The
                oldest are dropped first. A state in memory keeps none.
            snapshot_every: Number of records between two commits of the kept pages, by default 100,000. The next
                opening applies the records since the last one again.
            journal_days: Days for which the journal keeps records of pages that were not kept. None keeps them forever.
                Older ones are deleted in small steps: `why` no longer finds them, and a delivery of that age that is
                repeated is judged again. Kept pages, corrections and retractions stay. A state in memory keeps the
                latest 10,000 records of pages that were not kept.
            max_memory_bytes: Limit on the anonymous and shared memory of this process. Above it, the number of kept
                pages no longer grows if `keep` has a bound, which is recorded as a change of `keep`; otherwise
                pages are refused. Needs Linux.
            observers: Called with what was done, once it is durable.
            bases: States whose kept pages are compared with as if they had come before, and which are never changed:
                folders, or addresses as "s3://bucket/state". A new state is begun with them, with the rule and the
                bounds of the first one; when it is opened again, they need not be given. The verdict on a copy of a
                page in a base names the base.

        Returns:
            The open filter. Use it as a context manager, or call `close`.

        Raises:
            ConfigurationError: `path` is a file, `rule` names no profile, `keep` is no bound, `journal_days` is not
                above 0 or has no folder, `space` cannot be built or indexed, `max_memory_bytes` is below 1, or memory
                cannot be measured here; a base is no folder, is the state itself, is given twice, or is not one that
                the state was begun with.
            StateError: A base has no state, or has changed since the state was begun with it.
            AddressUnreachableError: The address of a base cannot be read.
            MemoryLimitError: The tables of the state take more than `max_memory_bytes`; nothing was loaded.
            StateInUseError: Another process has the folder open.
            ForeignStateError: The folder belongs to another space, to a newer version or to the Kafka service.
            StateFullError: The folder cannot be written.
            StateDamagedError: The journal or the kept pages cannot be read.
        """
        bounds = Keep.parse(keep) if isinstance(keep, str) else keep
        by = rule if rule is None or isinstance(rule, MatchRule) else profile_named(str(rule))
        built = build_fingerprinter(space).space
        if journal_days is not None and (path is None or not journal_days > 0):
            raise ConfigurationError(
                f"journal_days={journal_days!r}: a state in memory has no journal to keep, give a folder"
                if path is None
                else f"journal_days must be a number of days above 0, got {journal_days!r}"
            )
        limit = None if max_memory_bytes is None else ProcessMemoryLimit(max_memory_bytes)
        if limit is not None:
            limit.require_room()
        settings = StateSettings(
            text_budget_bytes=text_budget_bytes,
            snapshot_every=snapshot_every,
            journal_days=journal_days,
            memory_limit=limit,
        )
        if path is None:
            return cls(space, _state(None, built, (by, bounds), settings, observers, bases), None, None)
        folder = made_folder(Path(path))
        lock = StateLock(folder)
        lock.acquire()
        try:
            refuse_other_kind(folder, FolderKind.EMBEDDED)
            return cls(space, _state(folder, built, (by, bounds), settings, observers, bases), folder, lock)
        except BaseException:
            lock.release()
            raise

    @property
    def space_id(self) -> str:
        """Name of the space in which every fingerprint of this filter is made."""
        return self._state.space_id

    @property
    def rule(self) -> MatchRule:
        """The match rule in force."""
        return self._state.rule

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record of the state; verdicts with larger ones are given from now on."""
        with self._turn:
            return self._state.journal.sequence

    @property
    def rule_since(self) -> int:
        """Sequence since which `rule` is in force; verdicts with smaller ones were given by another rule."""
        with self._turn:
            return self._state.journal.log.rule_since()

    @property
    def keep(self) -> Keep:
        """The bounds of expiry in force."""
        return self._state.keep

    def check_html(
        self, html: str | bytes, url: str, *, content_type: str | None = None, delivery_id: bytes | None = None
    ) -> Verdict:
        """Extract a page from HTML and return the verdict on it.

        Args:
            html: The body, decompressed. Bytes are decoded as browsers do, with the declaration in the document and
                `content_type`; a declaration that contradicts the bytes is not used.
            url: The absolute http or https address from which the page was fetched. It is also the page's id.
            content_type: The Content-Type header (`text/html; charset=gbk`) or an encoding label (`gbk`). Ignored if
                `html` is a str.
            delivery_id: What identifies this delivery; see `check_many`.

        Returns:
            The verdict. A page without main text, or larger than 10 MiB, is `undecided`, and `reason` says why.

        Raises:
            RecordError: `url` is not an absolute http or https address.
            StateFullError: The disk did not take the page; see `check_many`.
            StateClosedError: The filter is closed.

        Example:
            ```python
            content_type = response.headers.get("Content-Type")
            verdict = dedup.check_html(response.content, response.url, content_type=content_type)
            ```
        """
        page = to_page(extract(html, declared_encoding=content_type), url)
        return self.check(page, delivery_id=delivery_id)

    def check_text(
        self,
        text: str,
        url: str,
        *,
        title: str = "",
        id: str | None = None,  # noqa: A002 - as in Page
        delivery_id: bytes | None = None,
    ) -> Verdict:
        """Return the verdict on a page whose main text is known.

        Args:
            text: The main text, without menus and other pages' excerpts.
            url: What names the page: its address or, as in files, anything else.
            title: The headline; it may be empty.
            id: Your name for the page; None is `url`.
            delivery_id: What identifies this delivery; see `check_many`.

        Returns:
            The verdict, once it is durable.

        Raises:
            RecordError: A value has a wrong type, or `url` is empty. Nothing was decided.
            StateFullError: The disk did not take the page; see `check_many`.
            StateClosedError: The filter is closed.

        Example:
            ```python
            verdict = dedup.check_text(row.body, row.link, title=row.headline, id=row.key)
            ```
        """
        line = line_of({"text": text, "url": url, "title": title, "id": id}, "the page")
        return self.check(page_of(line, extracted), delivery_id=delivery_id)

    def check(self, page: Page, *, delivery_id: bytes | None = None) -> Verdict:
        """Return the verdict on one page. `check_many` is faster for several pages.

        Args:
            page: The page, as made by `to_page` or by the caller.
            delivery_id: What identifies this delivery; see `check_many`.

        Returns:
            The verdict, once it is durable.

        Raises:
            StateFullError: The disk did not take the page; see `check_many`.
            StateClosedError: The filter is closed.
        """
        return self.check_many([page], delivery_ids=None if delivery_id is None else [delivery_id])[0]

    def check_many(
        self, pages: Iterable[Page | Mapping[str, object]], *, delivery_ids: Iterable[bytes | None] | None = None
    ) -> list[Verdict]:
        """Return the verdicts on several pages, as one durable batch.

        Args:
            pages: The pages, in the order in which they are decided; of each a `Page`, or a dict with the keys of a
                line of JSON: `url`, `text` or `html`, and optionally `id`, `title` and others.
            delivery_ids: What identifies each delivery (for example the line of a file), one for each page; None for
                a page without. A delivery whose bytes were given before gets the verdict it had, unless its record
                was deleted (`journal_days` of `open`) or its page retracted.

        Returns:
            One verdict for each page, in the order of `pages`.

        Raises:
            ConfigurationError: The numbers of pages and delivery ids differ.
            RecordError: A value has a wrong type or is missing. The message names page and field, as in
                "pages[3]: `url` is missing". Nothing was decided.
            StateFullError: The disk did not take the batch. Nothing of it is stored: free space, open the state
                again and repeat the batch.
            MemoryLimitError: Memory is used up, and no bound lets pages expire. Nothing of the batch is stored: close
                the filter, open it with a larger `max_memory_bytes` or with `keep`, and repeat the batch.
            StateClosedError: The filter is closed, or stopped at an earlier error.
        """
        read = [_page(page, f"pages[{at}]") for at, page in enumerate(pages)]
        prepared = _prepared(build_fingerprinter(self._options), read)
        return self.decide_many(prepared, None if delivery_ids is None else list(delivery_ids))

    def check_frame(self, frame: object, *, text: str = "text", url: str = "url", **columns: str) -> Any:
        """Return the verdicts on the rows of a data frame, as columns to put beside its own.

        Args:
            frame: Anything that speaks the Arrow interchange (`__arrow_c_stream__`): a data frame of pandas 2.2 or
                newer or polars, a relation of DuckDB, a table of pyarrow. Rows are decided in their order.
            text: Name of the column with the main text; the column `html` is used if there is no `text`.
            url: Name of the column with what names the page.
            columns: Names of other columns, by ours: `title="headline"`. A column that has our name need not be named.

        Returns:
            A table of pyarrow with one row for each of `frame`: `verdict`, `duplicate_of`, `duplicate_of_url`,
            `duplicate_of_base`, `distance`, `score`, `reason`, `sequence` and `space`. pandas, polars and DuckDB take
            it as it is.

        Raises:
            ConfigurationError: pyarrow is missing, `frame` does not speak Arrow, or it lacks a column.
            RecordError: A value has a wrong type or is missing. The message names row, from 0, and field, as in
                "row 3: `url` is missing". Nothing was decided.
            StateFullError: The disk did not take the pages. Those of earlier batches of 512 rows are decided.
            StateClosedError: The filter is closed.

        Example:
            ```python
            verdicts = dedup.check_frame(df, text="body", url="link")
            df = df.hstack(pl.from_arrow(verdicts))
            ```
        """
        require_pyarrow("check_frame")
        import pyarrow as pa

        named = {ours: theirs for ours, theirs in {"text": text, "url": url, **columns}.items() if theirs != ours}
        schema = verdict_schema(is_beside=True)
        batches = [verdict_rows(self.check_many(pages), schema) for pages in pages_of(frame, named)]
        return pa.Table.from_batches(batches, schema)

    def decide_many(
        self, prepared: Sequence[PreparedPage], delivery_ids: Sequence[bytes | None] | None = None
    ) -> list[Verdict]:
        """Return the verdicts on pages that were prepared elsewhere, as one durable batch.

        Fingerprinting takes nearly all of the time. `prepare` does it in any process, and a `PreparedPage` can be
        pickled.

        Args:
            prepared: Pages with fingerprints of this filter's space, in the order in which they are decided.
            delivery_ids: As for `check_many`.

        Returns:
            One verdict for each page, in the order of `prepared`.

        Raises:
            ConfigurationError: The numbers of pages and delivery ids differ.
            StateFullError: As for `check_many`.
            StateClosedError: As for `check_many`.

        Example:
            ```python
            with ProcessPoolExecutor() as pool:
                verdicts = dedup.decide_many(list(pool.map(prepare, pages)))
            ```
        """
        if delivery_ids is not None and len(delivery_ids) != len(prepared):
            raise ConfigurationError(
                f"{len(prepared)} pages came with {len(delivery_ids)} delivery ids: give one for each page, or none"
            )
        digests = (
            [None] * len(prepared)
            if delivery_ids is None
            else [None if delivery_id is None else _digest_of(delivery_id) for delivery_id in delivery_ids]
        )
        with self._turn:
            return self._state.decide(list(zip(prepared, digests, strict=True)))

    def retract(self, page: Page | Verdict | str, *, erase: bool = True) -> Verdict:
        """Remove a kept page, because it could not be stored or was taken down. Later copies are `unique` again.

        Args:
            page: The page as a `Page` (its canonical URL counts), as the verdict it had, or as its canonical URL or
                id.
            erase: Erase text, title and URL of the page from the state, of all its visits, and what other pages say
                of it, which takes one pass over the journal. An earlier visit then names the page that is kept now,
                too. False keeps the record; it is much faster, for pages that a store has refused.

        Returns:
            The verdict with which the page was kept.

        Raises:
            StateError: No such page is kept: it was never seen, was not kept, has expired, or was retracted before.
                What the state has of it is erased all the same.
            StateClosedError: The filter is closed.
        """
        reference = (
            page.sequence if isinstance(page, Verdict) else page.canonical_url if isinstance(page, Page) else page
        )
        with self._turn:
            return self._state.retract(reference, erase=erase)

    def correct(
        self, record: CorrectionRecord, *, author: str | None = None, timestamp: float | None = None
    ) -> Correction:
        """Record a person's judgement of two pages. It applies from the next page on, durably.

        A kept page that is called a duplicate is removed. Earlier verdicts do not change. The pages need not be
        known.

        Args:
            record: The two pages, by canonical URL, and whether the first is a duplicate of the second.
            author: Who made the judgement.
            timestamp: When, in Unix seconds.

        Returns:
            The correction with its sequence in the log.

        Raises:
            StateFullError: The disk did not take the record.
            StateClosedError: The filter is closed.
        """
        with self._turn:
            return self._state.correct(record, author=author, timestamp=timestamp)

    def verdict_of(self, delivery_id: bytes) -> Verdict | None:
        """Return the verdict that a delivery had.

        Args:
            delivery_id: The bytes that were given with the page.

        Returns:
            The verdict, or None if these bytes were never given, or the record was deleted.

        Raises:
            StateClosedError: The filter is closed.
        """
        with self._turn:
            return self._state.verdict_of(_digest_of(delivery_id))

    def text_of(self, verdict: Verdict) -> str | None:
        """Return the main text of a page.

        Args:
            verdict: The verdict on the page.

        Returns:
            The text, or None if it is no longer kept (see `text_budget_bytes` of `open`).

        Raises:
            StateClosedError: The filter is closed.
        """
        return self._view.text_at(verdict.sequence)

    def info(self) -> StateInfo:
        """Return what the state holds now.

        Returns:
            Counts of pages by verdict, kept pages, sizes on disk, and the rule in force.

        Raises:
            StateClosedError: The filter is closed.
        """
        with self._turn:
            return read_info(self._state.journal.database, self._folder)

    def close(self) -> None:
        """Commit the kept pages and release the folder. A second call does nothing."""
        with self._turn:
            try:
                self._state.close()
            finally:
                if self._lock is not None:
                    self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FilterView:
    """Read access to an open filter for twinsieve's own interfaces; internal, obtained with `view_of`.

    options: how fingerprints of the filter are made; None is the default space. turn: the lock of the filter.
    """

    def __init__(self, state: State, folder: Path | None, options: SpaceOptions | None, turn: threading.Lock) -> None:
        self._state = state
        self._folder = folder
        self._turn = turn
        self.options = options

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """Yield the journal for reading: on a separate connection or, for a state in memory, under the lock."""
        if self._folder is None:
            with self._turn:
                yield self._state.journal.database
            return
        database = Database(self._folder / JOURNAL_FILE, Access.READ)
        try:
            yield database
        finally:
            database.close()

    def held(self) -> HeldEntries:
        """Return the pages that others are compared with; takes milliseconds, however many they are.

        The view stays as it is, but for pages that are taken down; as long as it lives, the disk keeps what it has.
        """
        with self._turn:
            return self._state.held()

    def entry(self, sequence: int) -> Entry | None:
        """Return the live entry of the page at `sequence`, or None."""
        with self._turn:
            return self._state.entry(sequence)

    def host_text(self) -> HostText:
        """Return a copy of what is known of the hosts' own text; takes milliseconds."""
        with self._turn:
            return self._state.host_text()

    def text_at(self, sequence: int) -> str | None:
        """Return the main text of the page at `sequence`; None if it is no longer kept."""
        with self._turn:
            return self._state.text_at(sequence)

    def index_event(self) -> IndexEvent | None:
        """Return the index sizes; None while the filter is at work, so that the caller never waits."""
        if not self._turn.acquire(blocking=False):
            return None
        try:
            return self._state.index_event()
        finally:
            self._turn.release()


def _page(page: Page | Mapping[str, object], place: str) -> Page:
    """Return a page that was given as one or by its values; RecordError names the place and the field."""
    if isinstance(page, Page):
        return page
    if not isinstance(page, Mapping):
        raise RecordError(f"{place}: expected a Page or a dict with its values, got `{type(page).__name__}`")
    return page_of(line_of(page, place), extracted)


def _prepared(fingerprinter: Fingerprinter, pages: list[Page]) -> list[PreparedPage]:
    """Return prepared pages; RecordError names the one with a value of a wrong type."""
    try:
        return fingerprinter.prepare_all(pages)
    except (AttributeError, TypeError):
        for at, page in enumerate(pages):
            try:
                fingerprinter.prepare(page)
            except (AttributeError, TypeError) as error:
                field = str(error).rpartition("Page.")[2]
                raise RecordError(f"pages[{at}]: `{field}` has a value of a wrong type") from error
        raise


def view_of(dedup: NearDuplicateFilter) -> FilterView:
    """Return the internal view of `dedup`."""
    return dedup._view  # noqa: SLF001 - the one access that keeps the view out of the public class


def _state(
    folder: Path | None,
    space: Space,
    policy: tuple[MatchRule | None, Keep | None],
    settings: StateSettings,
    observers: Iterable[Observer],
    bases: Sequence[str | Path],
) -> State:
    if space.bits != INDEXED_BITS:
        raise ConfigurationError(
            f"space {space.space_id} has fingerprints of {space.bits} bits, the index takes {INDEXED_BITS}: "
            "choose 64 bits to compare pages"
        )
    rule, keep = policy
    return State(folder, space.space_id, space.to_dict(), rule, settings, observers, keep, bases)


def _digest_of(delivery_id: bytes) -> bytes:
    return blake2b(delivery_id, digest_size=_DIGEST_BYTES).digest()
