"""Live entries as an array: a fold of the log that can be cut anywhere."""

from hypothesis import given
from hypothesis import strategies as st

from dedup_service.core.decision.entries import Entry
from dedup_service.core.decision.entry_rows import EntryRows, flags_of, signed
from dedup_service.core.evidence.packed import Evidence, pack_evidence
from dedup_service.core.text.normalise import letters

UNSIGNED = st.integers(0, (1 << 64) - 1)
MAYBE = st.one_of(st.none(), UNSIGNED)
entries = st.builds(
    Entry, st.just(0), MAYBE, MAYBE, MAYBE, UNSIGNED, indexed=st.booleans(), evidence=st.binary(max_size=9)
)


def rows_of(entries: list[Entry]) -> EntryRows:
    """The entries from the columns of a journal."""
    columns = [
        (
            entry.sequence,
            *(signed(value or 0) for value in (entry.words, entry.body, entry.body_hash, entry.url_hash)),
            len(entry.evidence),
            flags_of(entry),
        )
        for entry in entries
    ]
    return EntryRows.from_log([columns], [[(entry.evidence,) for entry in entries]])


def values(rows: EntryRows) -> list[Entry]:
    """All entries as values."""
    return list(rows.entries())


def numbered(entries: list[Entry]) -> list[Entry]:
    """The same entries with sequences 1, 2, …."""
    return [
        Entry(number, e.words, e.body, e.body_hash, e.url_hash, e.indexed, e.evidence)
        for number, e in enumerate(entries, 1)
    ]


@given(st.lists(entries))
def test_entries_survive_the_array(some: list[Entry]) -> None:
    """Every field is the same afterwards, absent values and the highest bit included."""
    some = numbered(some)
    assert values(rows_of(some)) == values(EntryRows.from_entries(some)) == some


@given(st.lists(entries, max_size=12), st.integers(0, 12), st.sets(st.integers(1, 14)))
def test_a_fold_does_not_depend_on_where_it_is_cut(some: list[Entry], cut: int, removed: set[int]) -> None:
    """Folding all at once, or a first part and then the rest, gives the entries that were not removed."""
    some = numbered(some)
    early = {sequence for sequence in removed if sequence <= cut}
    first = EntryRows.none().followed_by(rows_of(some[:cut]), early)
    both = first.followed_by(rows_of(some[cut:]), removed - early)
    assert values(both) == [entry for entry in some if entry.sequence not in removed]


@given(st.lists(entries), st.sampled_from(["words", "body"]))
def test_a_block_index_gets_the_entries_that_can_be_compared(some: list[Entry], channel: str) -> None:
    """These are the entries that are indexed and have a fingerprint in the channel."""
    some = numbered(some)
    sequences, fingerprints = EntryRows.from_entries(some).indexed(channel)
    held = [(e.sequence, e.channel(channel)) for e in some if e.indexed and e.channel(channel) is not None]
    assert list(zip(sequences.tolist(), fingerprints.tolist(), strict=True)) == held


TEXTS = st.lists(st.sampled_from(["the harbour opened on Monday. ", "大桥下月通车，长四千米。", "12 "]), max_size=4)
PACKED = st.one_of(
    st.binary(max_size=400),
    TEXTS.map("".join).map(lambda text: pack_evidence("", text, letters(text), b"S")),
)


@given(st.lists(st.builds(Entry, st.just(0), MAYBE, MAYBE, MAYBE, UNSIGNED, evidence=PACKED), max_size=8))
def test_the_keys_of_all_rows_are_those_of_each(some: list[Entry]) -> None:
    """All keys are read at once from the packed evidence; a page without keys has no row."""
    some = numbered(some)
    sequences, keys = EntryRows.from_entries(some).keyed()
    each = {e.sequence: tuple(filter(None, Evidence(e.evidence).keys.tolist())) for e in some}
    found = dict(zip(sequences.tolist(), (tuple(filter(None, row)) for row in keys.tolist()), strict=True))
    assert found == {sequence: values for sequence, values in each.items() if values}
