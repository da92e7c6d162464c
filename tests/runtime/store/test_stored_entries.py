"""The settled entries of a decider on disk answer as those in memory do."""

import random
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from dedup_service.core.decision.decider import Decider
from dedup_service.core.errors import StateError
from dedup_service.core.evidence.packed import SKETCH_BYTES, Evidence
from dedup_service.core.page import PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import rule_for
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.store.errors import StoreDamagedError
from dedup_service.runtime.store.page_files import StoreSizes
from dedup_service.runtime.store.stored_entries import StoredEntries
from tests.core.decision.crowded import SENTENCES, page_of
from tests.page_names import NamesInMemory

from .pages import LABEL, pages, stored_page

SIEVE_BYTES = 16
SIZES = StoreSizes({}, 0, 0, 0)


def opened(folder: Path) -> StoredEntries:
    """Return entries."""
    return StoredEntries.open(folder, LABEL, rule_for(), IndexLayout())


def with_another_sketch(page: PreparedPage, seed: int) -> PreparedPage:
    """Return a page of which only the first bytes of the sketch, those of the sieve, are close to those before."""
    sketch, chosen = Evidence(page.evidence).sketch, random.Random(seed)
    flipped = sum(1 << bit for bit in chosen.sample(range(8 * SIEVE_BYTES), 40))
    sieve = int.from_bytes(sketch[:SIEVE_BYTES], "little") ^ flipped
    other = sieve.to_bytes(SIEVE_BYTES, "little") + chosen.randbytes(SKETCH_BYTES - SIEVE_BYTES)
    return replace(page, evidence=page.evidence.replace(sketch, other))


def damage(path: Path, body_hash: int | None) -> None:
    """Flip a bit of the row with this hash."""
    assert body_hash is not None
    content = path.read_bytes()
    place = content.index(body_hash.to_bytes(8, "little"))
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([content[place] ^ 1]))


def test_a_view_says_whether_it_has_a_page(tmp_path: Path) -> None:
    """Pages that came after it was taken are not among them; removed ones are, whatever is committed, unless erased."""
    entries, chosen = opened(tmp_path), random.Random(1)
    sequences = list(accumulate(1 + number % 3 for number in range(3000)))
    rows = [stored_page(1, sequence) for sequence in sequences]
    first = entries.pages.append(rows)
    held = entries.held()
    entries.pages.append(pages(2, 10, first=sequences[-1] + 1))
    gone = sorted(chosen.sample(range(3000), 1200))
    entries.pages.remove([first + number for number in gone])
    for sequence in (1, 2):
        entries.begin_commit(sequence, "", b"", SIZES)()
    erased = sequences[7:2000:100]
    for sequence in erased:
        entries.erase(sequence)
    live = set(sequences) - set(erased)
    sought = [*chosen.choices(range(sequences[-1] + 20), k=200), *erased, -1, sequences[-1] + 1]
    assert [held.has(sequence) for sequence in sought] == [sequence in live for sequence in sought]
    assert [entry.sequence for entry in held.entries()] == sorted(live)
    removed = rows[gone[-1]].url_hash.to_bytes(8, "little")
    assert removed in (tmp_path / "rows").read_bytes()
    del held
    entries.begin_commit(3, "", b"", SIZES)()
    assert removed not in (tmp_path / "rows").read_bytes()
    held = entries.held()
    entries.close()
    with pytest.raises(StateError, match="are closed"):
        held.entries()


def test_the_row_of_an_entry_is_read_only_if_its_sketch_is_close(tmp_path: Path) -> None:
    """Of what the cells find at random, the disk is asked for the evidence alone, which takes one read and not two."""
    entries, names, sentences = opened(tmp_path), NamesInMemory(), SENTENCES[:6]
    decider = Decider(rule_for(), "a space", names, layout=IndexLayout(window=1), entries=entries)
    original = page_of("http://original/", sentences)
    unlike = [with_another_sketch(page_of(f"http://unlike/{at}", sentences), at) for at in range(6)]
    for sequence, page in enumerate([*unlike, original, page_of("http://last/", SENTENCES[9:])]):
        names.add(sequence, page.page.id, page.page.url)
        assert decider.decide(sequence, page).verdict.kind == VerdictKind.UNIQUE
    copy = page_of("http://copy/", sentences)
    assert decider.candidates(8, copy) == [6]
    for sequence in range(6):
        damage(tmp_path / "rows", unlike[sequence].body_hash)
    assert decider.candidates(8, copy) == [6]
    damage(tmp_path / "rows", original.body_hash)
    with pytest.raises(StoreDamagedError):
        decider.candidates(8, copy)
    entries.close()
