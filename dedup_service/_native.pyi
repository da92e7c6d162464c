"""The native core: what is made of texts, the tables in which kept pages are found, and their store (crate `native`).

What is returned as bytes has native byte order. A value outside its range raises ConfigurationError, one that the table
contradicts StateError, a fault of this module InternalError: the table is of no use then.
The interpreter lock is released while a batch is worked on. No table is thread-safe; of a store, all threads may read.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from dedup_service.core import page
from dedup_service.core.evidence.card import Card
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.space import Space

class PreparedText:
    """What is made of the texts of a page; the fields of `core.page.PreparedPage` and of its fingerprint.

    words is None for a scheme that does not weigh words by (1 + ln n), IDF, title and markers alone.
    """

    words: int | None
    body: int | None
    body_hash: int | None
    text_hash: int | None
    evidence: bytes
    keys: bytes
    reason: str | None

class Word:
    """A distinct word of a page that is a feature.

    count: occurrences in the body, 1 for a word of the title alone. is_marked: whether a marker marks it.
    is_chinese: whether it was cut as Chinese where it first occurs.
    """

    word: str
    count: int
    idf: float
    in_title: bool
    is_marked: bool
    is_chinese: bool

class Preparer:
    """Prepares the pages of a space; threads may share it. The interpreter lock is released meanwhile.

    The tables are those whose digests `space` has; `segmenter` has the dictionary and a user's words. idf: lines
    `word value`. stop_words, markers: folded. icu: cuts a text into words and the pieces between them, together all of
    it, where that has a script without spaces that ICU has a dictionary for; without it such scripts come as pairs of
    characters. It is called with the lock held, from any thread.
    ConfigurationError names the line of the table that cannot be read.
    """

    def __init__(
        self,
        space: Space,
        segmenter: Segmenter,
        *,
        idf: str,
        stop_words: Sequence[str],
        markers: Sequence[str],
        icu: Callable[[str], list[str]] | None = None,
    ) -> None: ...
    def prepare(self, pages: Sequence[page.Page], threads: int = 1) -> list[PreparedText]:
        """Return what is made of pages, in their order. threads: 1 works in the caller's."""

    def words(self, page: page.Page) -> list[Word]:
        """Return the distinct words of a page, in the order in which they first occur."""

class HammingIndex:
    """The block index by itself: every row within a radius of a fingerprint, 0 to 7 bits.

    rows: 32 bits; fingerprints: 64 bits. A row has one fingerprint, and several rows may have the same. StateError for
    a row that is there already, or not there to be removed; nothing is changed then.
    statistics: the fields of `core.index.IndexStatistics`. work: of all probes so far, fingerprints probed, buckets
    read and lanes compared, a cost that no machine changes.
    """

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def insert(self, rows: Sequence[int], fingerprints: Sequence[int]) -> None: ...
    def remove(self, rows: Sequence[int], fingerprints: Sequence[int]) -> None: ...
    def probe(self, fingerprints: Sequence[int], radius: int, most_identical: int) -> list[list[tuple[int, int]]]:
        """Return (distance, row) of what is near each fingerprint, in this order.

        most_identical: of the rows that have one fingerprint, return so many with the smallest numbers.
        """

    def statistics(self) -> tuple[int, int, int, int, int, int]: ...
    def work(self) -> tuple[int, int, int]: ...

def block_bounds(radius: int) -> list[tuple[int, int]]:
    """Return of each of the four tables in how many bits its block and the next one may differ; -1: not asked."""

def panic_on_purpose(message: str) -> None:
    """Raise InternalError as a fault of this module would, for tests."""

class StoreLabel:
    """Whose rows these are. log: identity of the log; space_id: of its fingerprints."""

    log: str
    space_id: str

    def __init__(self, log: str, space_id: str) -> None: ...

class Manifest:
    """What a commit says of a store.

    identity: of the store, by chance. base: of the store that has the rows before `first_row`; 0 without one.
    next_row: the row that comes next. live_rows: those of the base included. rows_bytes,
    evidence_bytes: of the files that count.
    sequence, tail: the last record of the log that is in it, and its digest; 0 and nothing before the first commit.
    note: what the caller wants readers to know. number: of commits so far.
    """

    label: StoreLabel
    identity: int
    base: int
    first_row: int
    next_row: int
    live_rows: int
    rows_bytes: int
    evidence_bytes: int
    sequence: int
    tail: str
    note: bytes
    number: int

class PageStore:
    """The kept pages in a folder, by row number (`native/src/store`).

    Methods raise StoreDamagedError for altered files, StoreFullError if the system does not take or give something, and
    StateError for a call that contradicts the store or comes after `close`. KeyError: a row is not live.
    """

    folder: Path

    @staticmethod
    def create(folder: Path, label: StoreLabel, base: PageStore | None = None) -> PageStore:
        """Make an empty store, or one that goes on from `base`, which was opened to read and is closed for the caller.

        StateError if there is a store.
        """

    @staticmethod
    def open(
        folder: Path, label: StoreLabel, *, writable: bool = False, held: bool = False, base: PageStore | None = None
    ) -> PageStore:
        """Open a store as its last commit left it. base: as for `create`; without the rows that are dead there by now.

        held: rows that a writer removes meanwhile stay until this is closed, but for those that it erases.
        ForeignStoreError if it belongs to another log, space, version or base.
        """

    def view(self) -> PageStore:
        """Return a reader of the rows that are live now, held as by `open`, for any thread.

        It must not be read after the folder is opened again.
        """

    def close(self) -> None:
        """Close all files; what was not committed is lost. A second call does nothing."""

    def __len__(self) -> int:
        """Return the number of live rows."""

    @property
    def next_row(self) -> int:
        """The number of the next row that is appended."""

    @property
    def first_own_row(self) -> int:
        """The first row that is not in a base."""

    @property
    def manifest(self) -> Manifest:
        """What the last finished commit says."""

    def take_extra(self) -> bytes:
        """Return what the commit that was opened had beside the rows; nothing when it is called again."""

    def append(self, entries: Sequence[Entry]) -> int:
        """Append settled entries in order of sequences, behind all others; return the first row."""

    def remove(self, rows: Sequence[int]) -> None:
        """Remove live rows, each once; KeyError, and none is removed, if one is not live."""

    def erase(self, rows: Sequence[int]) -> None:
        """Remove rows, and make them zeros durably; waits for the disk."""

    def entries(self, rows: Sequence[int], *, with_evidence: bool = True) -> list[Entry]:
        """Return live rows, without those that their owner, the only one who may, has taken away.

        with_evidence: False leaves it on the disk; it is b"" then.
        """

    def live_rows(self, first: int, limit: int) -> list[int]:
        """Return the first live rows from one on, ascending, `limit` at most. The disk is asked for them."""

    def find(self, sequence: int) -> int | None:
        """Return the live row of a page; or, so that it can be removed, one in its place that a base has erased."""

    def find_kept(self, sequence: int) -> int | None:
        """Return the row of a page that has its bytes, live or not."""

    def begin_commit(self, sequence: int, tail: str, note: bytes) -> PendingCommit:
        """Note the present state, within milliseconds. Every commit is finished before the folder is opened again."""

    def compact(self) -> int:
        """Give back the space of rows that no commit has any more; return the bytes that the disk has got."""

    def verify(self) -> None:
        """Read all live rows that are not in a base; StoreDamagedError names the first that is altered."""

    def sizes(self) -> tuple[int, int]:
        """Return the bytes on disk of the evidence, and the bytes of memory that grow with the rows."""

class TablesBuild:
    """Tables of the live rows of a store, built from its file of rows; the store does not change meanwhile.

    rule: whose fingerprints are searched. slots, levels: of the cells. threads: how many work at most. A `Decider` or
    `ShardEntries` takes the tables, once. An error leaves nothing of what was built.
    """

    def __init__(self, store: PageStore, rule: Rule, slots: int, levels: int, threads: int) -> None: ...
    def step(self, rows: int) -> int:
        """Read the next rows; return how many live ones were read so far. StoreDamagedError names an altered one.

        Rows that the base of the store has lost leave the store.
        """

class PendingCommit:
    """A commit whose content is noted."""

    def finish(self, extra: bytes) -> None:
        """Make it durable in any thread, with what the caller has beside the rows. A second call does nothing.

        StoreFullError leaves the commit before, and the store has to be opened again.
        """

def read_manifest(folder: Path) -> Manifest | None:
    """Return what the last commit in a folder says, without opening the store; None if there is no store.

    StoreDamagedError if it is altered, ForeignStoreError if another version wrote it.
    """

def read_commit(folder: Path) -> tuple[Manifest, bytes] | None:
    """Return the same, with what the caller had beside the rows."""

CHARACTER_TABLES: str
"""Releases of Unicode and of OpenCC that folding and words are of, in every build alike."""

def crowding_attributes(page: bytes, limit: int) -> list[tuple[int, int]]:
    """Return where the attributes of each tag of HTML after its first `limit` begin and end, in bytes, ascending."""

def fold(text: str) -> str:
    """Return a text folded: without differences of width, case, Chinese script and white space (`native/src/text`).

    Here and below, lone surrogates of a text become U+FFFD.
    """

def exact_form(folded: str) -> str:
    """Return what a text that is folded without loss must have in common with another to be the same text."""

def between_repost_marks(folded: str) -> tuple[int, int]:
    """Return where a folded text begins and ends without repost markers; all of a text of nothing but markers."""

def distinct_ngrams(letters: str, n: int) -> bytes:
    """Return the hashes of the distinct n-grams of letters, in order: uint64[d]."""

def sentences_in_order(folded: str) -> tuple[list[tuple[int, int, int]], int]:
    """Return the sentences of a text in their order, and how many letters the text has.

    Of each: its value (`core.evidence.packed.Evidence.sentence_values`), the letters of the text before it, and those
    up to its end.
    """

def is_chinese(folded: str, language: str | None = None) -> bool:
    """Return whether `Segmenter` cuts a text as Chinese. language: the BCP 47 tag that its page states, if any."""

def cut_at_boundaries(folded: str) -> list[str]:
    """Return the words and the pieces between them by Unicode word boundaries.

    Pieces of scripts without spaces are overlapping pairs of characters.
    """

class PageText:
    """The title and body of a page, folded; the body without a headline that repeats the title and repost markers.

    letters: of the body, with digits and written marks. exact: title and body folded without loss. exact_hashes: of the
    exact forms, of the body, and of title and body: unsigned 64-bit, None without a body.
    """

    title: str
    body: str
    letters: str
    exact: tuple[str, str]
    exact_hashes: tuple[int | None, int | None]

    def __init__(self, title: str, body: str) -> None: ...

class Segmenter:
    """Cuts folded texts into words and the pieces between them, by script; any number of threads may.

    jieba: folder of the installed package. cache: folder in which its dictionary is kept, a file of some 8 MB for each
    list of user words, which processes share; None, or one that cannot be written, to read jieba at each start.
    user_words: folded. ConfigurationError if the package is not that of jieba 0.42.
    """

    def __init__(self, jieba: Path, cache: Path | None = None, user_words: Sequence[str] = ()) -> None: ...
    def cut(self, folded: str, language: str | None = None) -> list[str]:
        """Return the pieces of a text. language: the BCP 47 tag that its page states, if any."""

    def cut_chinese(self, folded: str) -> list[str]:
        """Return the pieces of a text, whatever its script, as jieba cuts it."""

class HostText:
    """Learns from pages in their order which sentences are their hosts' own text."""

    def __init__(self, state: bytes = b"") -> None:
        """Continue from what `state` returned, b"" to begin with; StateError if it is no such state."""

    def __len__(self) -> int:
        """Return how many sentences are held, common or not."""

    @property
    def size_bytes(self) -> int:
        """Memory of the tables: 16 KiB for few pages, 16 MiB at most."""

    def learn(self, host: int, terms: Sequence[int], keys: bytes, sentences: Sequence[int]) -> None:
        """Learn from a page, whatever its verdict, that its host has these sentences; nothing from one without any.

        host: hash of the host, unsigned 64-bit. terms: of its title, 16 bits each. keys: packed. sentences: 32 bits
        each.
        """

    def common(self, host: int, sentences: Sequence[int]) -> list[bool]:
        """Return which sentences are text of a host, as far as the pages learned so far say."""

    def common_to_pair(self, one: int, ours: Sequence[int], other: int, theirs: Sequence[int]) -> list[int]:
        """Return the sentences that do not count when two pages are compared: those that are text of either host.

        one, other: hashes of the hosts. ours, theirs: sentences. Returns the common ones of both pages, ascending and
        distinct.
        """

    def copy(self) -> HostText:
        """Return a copy that later pages do not change."""

    def state(self) -> bytes:
        """Return the state as bytes, from which another continues alike."""

def clusters_after(groups: bytes, sequences: int) -> bytes:
    """Return the packed clusters of `GuardState.groups` of a log in which so many records come before them."""

class Rule:
    """A `MatchRule`, compiled. ConfigurationError if a value of it is out of range."""

    def __init__(self, rule: MatchRule) -> None: ...
    @property
    def min_rough_jaccard(self) -> float:
        """Rough Jaccard similarity below which no row of the table can hold."""

    def compare(self, kept: Entry, page: Entry, common: Sequence[int]) -> ComparedPages | None:
        """Compare a page with a kept one; None if it is neither a match nor a near miss.

        common: values of sentences that the host of either page repeats, ascending, 32 bits each.
        """

class ComparedPages:
    """What a rule says of a candidate.

    score: of a match, 0 to 1, None of a near miss. reason: of a verdict; that of a near miss ends with the kept page's
    name.
    """

    score: float | None
    reason: str

def similarity(
    pages: tuple[bytes, bytes],
    distance: tuple[int | None, int | None],
    common: Sequence[int],
    same_host: bool,
    mu_thousandths: int,
    card: Card,
) -> dict[str, float | Fraction | tuple[float, float]]:
    """Return the quantities of two pages by the names of `Similarity`: floats but for `combined`, an exact fraction.

    `common_letters` has one for each page. pages: packed evidence. distance: in the channels `words` and `body`, in
    bits. common: as in `Rule.compare`. same_host: whether both are of one host.
    mu_thousandths: the weight μ of the combined similarity, 1 to 1000. card: of the score.
    """

def score_of(words: int | None, body: int | None) -> float | None:
    """Return the similarity, 0 to 1, of pages whose fingerprints differ in so many bits; None without any.

    The cosine that SimHash estimates, cos(π·d/64), averaged over the channels, rounded to four places. Source:
    Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002, section 3.
    """

class Page:
    """A page to decide. Fingerprints and hashes are unsigned 64-bit, None if absent.

    url, host: hashes of its canonical URL and of that URL's host (`core.url.url_and_host_hash`). claim: hash of the URL
    that it claims. is_judged: whether it is long enough. evidence, keys: packed.
    """

    def __init__(
        self,
        sequence: int,
        words: int | None,
        body: int | None,
        body_hash: int | None,
        text_hash: int | None,
        url: int,
        host: int,
        evidence: bytes,
        keys: bytes,
        *,
        claim: int | None,
        is_judged: bool,
    ) -> None: ...

class Entry:
    """One kept page, which nobody changes.

    sequence: its place in the log. words, body: fingerprints, unsigned 64-bit, None if absent. body_hash, text_hash,
    url_hash: of the exact form of the body, of title and body, and of the canonical URL, unsigned 64-bit. host: 32-bit
    hash of the URL's host. indexed: whether the block indexes have it. ordinal: number of pages decided before it.
    keys: its keys, as the prepared page has them while the entry is in the window, and then its path through the cells
    (`core.index`); `settled` says which. row: of a settled entry in its store, -1 of others; equal entries
    may have different ones. flags: which values there are.
    """

    sequence: int
    words: int | None
    body: int | None
    body_hash: int | None
    url_hash: int
    indexed: bool
    evidence: bytes
    text_hash: int | None
    host: int
    ordinal: int
    keys: bytes
    settled: bool
    row: int
    flags: int

    def __init__(
        self,
        sequence: int,
        words: int | None,
        body: int | None,
        body_hash: int | None,
        url_hash: int,
        indexed: bool = True,
        evidence: bytes = b"",
        text_hash: int | None = None,
        host: int = 0,
        ordinal: int = 0,
        keys: bytes = b"",
        settled: bool = False,
        row: int = -1,
    ) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def at(self, sequence: int) -> Entry:
        """Return the same entry at another sequence."""

def promising(entries: Sequence[Entry], page: Entry, most: int) -> list[int]:
    """Return the places of the entries that look nearest to a page, so many at most.

    By the smaller distance of the two channels, or by the first 256 bits of the sketches, as far as more of them are
    equal than by chance.
    """

class Decided:
    """What becomes of a page.

    kind: a `VerdictKind`. reason: of the verdict, None if the page itself says it or there is none; the name of the
    kept page at `named` follows. guard: which one objects to the match with that page, what it counts, and its limit;
    of `surge` the recent and the usual share, in percent. original: sequence of the page that the verdict names.
    words, body: bits in which the two differ. by_claim: whether it is a visit of the URL that it claims;
    claim_refused: whether it is not. copy: what guards counted, packed (`guard_state.Copy`). The rest is as in
    `decider.Decision`.
    """

    kind: str
    reason: str | None
    named: int | None
    guard: tuple[str, int, int] | None
    original: int | None
    words: int | None
    body: int | None
    score: float | None
    kept: bool
    replaces: int | None
    by_claim: bool
    claim_refused: bool
    copy: bytes | None

IndexSizes: TypeAlias = tuple[int, int, int, int, int, int]
"""Of a block index: rows, distinct fingerprints, bytes, largest bucket, split buckets, buckets of a table."""

CellSizes: TypeAlias = tuple[int, int, int, int, int]
"""Of the cells: rows in a cell, cells, cells that turned rows away, bytes, bytes of sieves among them."""

Sizes: TypeAlias = tuple[list[IndexSizes | None], CellSizes, tuple[int, int, int], int]
"""Of the block index of each channel, of the cells; bytes of the tables of URLs, texts and bodies; of the entries."""

GuardFields: TypeAlias = tuple[bytes, int, bytes, int, int, int]
"""The fields of `GuardState` in their order."""

ExpiryFields: TypeAlias = tuple[int, bytes, int, int]
"""The fields of `ExpiryState` in their order."""

ShardAnswer: TypeAlias = tuple[Sequence[bytes], bytes | None, bytes, bool]
"""Of one shard: what it says of each batch of a message, of its record, its oldest entries, and if these are all."""

class StateCopy:
    """The state of a decider at one moment, without its settled entries; any thread may read it."""

    def fields(self) -> tuple[int, list[Entry], list[tuple[int, Entry]], bytes, GuardFields | None, ExpiryFields]:
        """Return ordinal, young and removed entries, hosts' own text, guards and expiry, as `Decider` takes them."""

class Decider:
    """Decides pages in the order of their sequences, and keeps the entries of kept pages. One thread at a time.

    Methods without a description are those of `core.decision.decider.Decider`, which has the names of pages, too.

    window: pages by which the tables are behind. slots, levels: of the cells. store, tables: the settled entries; None:
    in memory. answered: they are elsewhere: how many shards there are, their live entries, what `answered_state`
    returned. settled: live settled entries that are in no store; young: those that are not settled; removed: removed
    ones that the cells still need, with the ordinal of the latest page then. The rest is as in `decider.DeciderState`.
    After InternalError it is of no use: open the state again.
    """

    def __init__(
        self,
        rule: Rule,
        *,
        window: int,
        slots: int,
        levels: int,
        store: PageStore | None = None,
        tables: TablesBuild | None = None,
        answered: tuple[int, int, bytes | None] | None = None,
        ordinal: int = 0,
        settled: Sequence[Entry] = (),
        young: Sequence[Entry] = (),
        removed: Sequence[tuple[int, Entry]] = (),
        host_text: bytes = b"",
        guards: GuardFields | None = None,
        expiry: ExpiryFields = (-1, b"", 0, 0),
        max_pages: int | None = None,
        max_age_minutes: int | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def decide_batch(self, pages: Sequence[Page]) -> list[Decided | None]:
        """Decide pages in order of their sequences; None for one that is unique, if nothing else is to be said.

        Fewer are returned if something stopped it: `raise_stopped` says what.
        """

    def panic_at(self, sequence: int) -> None:
        """Panic at the page with this sequence, as a fault of this module would: for tests."""

    def raise_stopped(self) -> None:
        """Raise what stopped the latest batch, if something did."""

    def apply(self, pages: Sequence[Page], effects: Sequence[tuple[bool, int | None, bytes | None]]) -> None:
        """Apply decisions that were made before: the same state follows as from `decide_batch`.

        effects: whether the page has an entry, the sequence of the entry that it replaced, what guards counted, packed.
        KeyError if it replaced one that there is not.
        """

    def remove(self, sequence: int) -> None:
        """Remove the live entry at a sequence; KeyError if there is none."""

    def remove_expired(self, up_to: int) -> None: ...
    def entry(self, sequence: int) -> Entry | None: ...
    def holds(self, sequence: int) -> bool: ...
    def young(self) -> list[Entry]:
        """Return the live entries that are not settled, in order."""

    def visit(self, url: int) -> int | None:
        """Return the sequence of the earliest live entry with a URL's hash."""

    def set_rule(self, rule: Rule) -> None: ...
    def set_keep(self, max_pages: int | None, max_age_minutes: int | None) -> None:
        """Use other bounds of expiry from the next page on."""

    def advance(self, sequence: int, minute: int) -> bool: ...
    def expired(self) -> tuple[int, int]:
        """Return how many entries expired by their number, and by their age."""

    def expired_up_to(self) -> int: ...
    def minute(self) -> int | None: ...
    def host_text(self) -> HostText: ...
    def host_text_bytes(self) -> int:
        """Return the memory of what is known of the hosts' own text."""

    def candidates(self, page: Page) -> list[int]: ...
    def sizes(self) -> Sizes: ...
    def piece(self, first: int, limit: int) -> tuple[int, list[Entry]] | None:
        """Return the first settled entries from a row on, and the row of the last one; None if there are no more."""

    def correct(self, url: int, original: int, duplicate: bool) -> None: ...
    def work(self) -> tuple[int, int]:
        """Return how many entries were looked at, and how many compared, for all pages so far."""

    def state(self) -> StateCopy:
        """Return a copy of the state without the settled entries, within milliseconds."""

    def answer(self, answers: Sequence[ShardAnswer]) -> None:
        """Take the answers of all shards to the message that is decided next; StateError if they do not fit."""

    def take_outcome(self) -> tuple[int, bytes, list[tuple[int, int, int]]]:
        """Return what that message has done: the ordinal of its first page, of each page whether it is kept, removals.

        A removal: the ordinal of the page after which it came, sequence and ordinal of the entry. StateError if the
        message has fewer pages than the shards have answered for.
        """

    def answered_state(self) -> bytes | None:
        """Return what a snapshot has of the answers of shards; None if the settled entries are here."""

    def first_young(self) -> int | None:
        """Return the sequence of the earliest live entry that is not settled."""

Told: TypeAlias = tuple[bytes, list[int]]
"""What a shard tells the resolver, and the sequences of the entries in it, ascending."""

class ShardEntries:
    """The entries of a shard, and its pages that are not settled. Arguments, and other methods, as of `Decider`."""

    def __init__(
        self,
        rule: Rule,
        *,
        window: int,
        slots: int,
        levels: int,
        store: PageStore | None = None,
        tables: TablesBuild | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def set_rule(self, rule: Rule) -> None: ...
    def keep(self, pages: Sequence[Entry]) -> None:
        """Keep pages of which the resolver has decided that: they wait until they are settled."""

    def remove(self, sequence: int, after: int) -> None:
        """Remove a live entry, as the effect of the page with the ordinal `after`."""

    def answer(self, first: int, pages: Sequence[Page], targets: Sequence[int | None]) -> list[Told]:
        """Return what there is of pages, of which the first has the ordinal `first`, in as many parts as are probed.

        targets: of each page the hash of the URL that a correction calls its original.
        """

    def settle(self, ordinal: int) -> None:
        """Settle what is due for the page with this ordinal."""

    def oldest(self, most: int) -> tuple[bytes, bool]:
        """Return the earliest settled entries, and whether these are all."""

    def first(self) -> int | None:
        """Return the sequence of the earliest settled entry."""

    def holds(self, sequence: int) -> bool: ...
    def at_url(self, url: int) -> Told:
        """Return the live entry with a URL's hash, if there is one."""

    def at(self, sequences: Sequence[int]) -> Told:
        """Return the live entries at some sequences."""

    def sizes(self) -> Sizes: ...

def pages_of_shard(pages: Sequence[Page], first: int, index: int, of: int) -> list[Entry]:
    """Return those of some pages that shard `index` of `of` would keep. first: ordinal of the first page."""

def packed_entries(entries: Sequence[Entry]) -> bytes:
    """Return entries as bytes, for a snapshot."""

def unpacked_entries(packed: bytes) -> list[Entry]:
    """Return the entries that `packed_entries` wrote; StateError for other bytes."""

def found_in_answer(answer: bytes) -> list[list[int]]:
    """Return the sequences of what a shard has found for each page of an answer; StateError for other bytes."""
