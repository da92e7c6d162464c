"""The native decider and what no caller should give it: wrong types and numbers, evidence of strangers, faults."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dedup_service import _native
from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.evidence.keys import LEVELS
from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.log_records import CorrectionRecord
from dedup_service.core.page import Fingerprint
from dedup_service.core.rules.guards import NO_GUARDS, Guards
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.verdict import VerdictKind
from tests.core.decision.crowded import Run, content, page_at

RULE = PROFILES["balanced"]
MOST, LEAST = (1 << 63) - 1, -(1 << 63)


def page(**other: Any) -> _native.Page:
    """A page without text, with other values."""
    values = {"sequence": 1, "words": None, "body": None, "body_hash": None, "text_hash": None, "url": 0, "host": 0}
    return _native.Page(**values | {"evidence": b"", "keys": b"", "claim": None, "is_judged": True} | other)


def entry(**other: Any) -> _native.Entry:
    """An entry without text, with other values."""
    values = {"sequence": 1, "words": None, "body": None, "body_hash": None, "url_hash": 0, "indexed": True}
    more = {"evidence": b"", "text_hash": None, "host": 0, "ordinal": 0, "keys": b"", "settled": False, "row": -1}
    return _native.Entry(**values | more | other)


def decider(**other: Any) -> _native.Decider:
    """A new decider, with other values."""
    return _native.Decider(_native.Rule(RULE), **{"window": 2, "slots": 2, "levels": LEVELS} | other)


@pytest.mark.parametrize("make", [page, entry])
@pytest.mark.parametrize("wrong", [-1, 1 << 64, 1.0, "1"])
@pytest.mark.parametrize("name", ["words", "body", "body_hash", "text_hash"])
def test_hashes_are_unsigned_numbers_of_64_bits(make: Callable[..., object], name: str, wrong: object) -> None:
    """Others are refused; None is none."""
    with pytest.raises((TypeError, OverflowError)):
        make(**{name: wrong})
    make(**{name: (1 << 64) - 1})
    make(**{name: None})


@pytest.mark.parametrize("make", [page, entry])
@pytest.mark.parametrize(
    "wrong",
    [
        {"sequence": 1 << 63},
        {"sequence": None},
        {"host": -1},
        {"evidence": "text"},
        {"evidence": None},
        {"keys": 7},
        {"other": 1},
    ],
)
def test_values_of_another_type_are_refused(make: Callable[..., object], wrong: dict[str, object]) -> None:
    """They never get as far as a decider."""
    with pytest.raises((TypeError, OverflowError)):
        make(**wrong)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"slots": 0}, ConfigurationError),
        ({"slots": 65}, ConfigurationError),
        ({"levels": 0}, ConfigurationError),
        ({"levels": 33}, ConfigurationError),
        ({"slots": -1}, OverflowError),
        ({"window": -1}, OverflowError),
        ({"window": "2"}, TypeError),
        ({"store": 1}, TypeError),
        ({"settled": [1]}, TypeError),
        ({"young": None}, TypeError),
        ({"host_text": b"no state"}, StateError),
        ({"guards": (b"x", 0, bytes(1000), -1, 0, 0)}, StateError),
        ({"guards": (b"", 0, bytes(999), -1, 0, 0)}, StateError),
        ({"guards": (b"", 0, bytes(1000), -1, 0)}, (TypeError, ValueError)),
        ({"expiry": (-1, b"half a time", 0, 0)}, StateError),
        ({"max_pages": -1}, OverflowError),
        ({"answered": (1, 0, b"no answer")}, StateError),
        ({"other": 1}, TypeError),
    ],
)
def test_a_state_that_is_none_is_refused(wrong: dict[str, object], error: type[Exception]) -> None:
    """The error says what is wrong with it, and no decider is made."""
    with pytest.raises(error):
        decider(**wrong)


@pytest.mark.parametrize(
    "state",
    [
        {"young": [entry(sequence=5), entry(sequence=5), entry(sequence=2)]},
        {"young": [entry(sequence=LEAST), entry(sequence=MOST)]},
        {"young": [entry(ordinal=MOST, keys=b"x", evidence=b"\1" * 300, words=1)], "ordinal": (1 << 64) - 1},
        {"settled": [entry(settled=True, keys=b"\xff" * 7)]},
        {"settled": [entry(settled=True, row=3), entry(settled=True, row=3)]},
        {"settled": [entry(settled=True, row=MOST)]},
        {"removed": [(LEAST, entry()), (MOST, entry(sequence=7, settled=True))]},
        {"window": (1 << 64) - 1, "ordinal": (1 << 64) - 1},
        {"window": 0},
        {"expiry": (MOST, bytes(16), (1 << 64) - 1, (1 << 64) - 1), "max_pages": 0, "max_age_minutes": LEAST},
    ],
)
def test_a_state_that_contradicts_itself_decides_or_is_a_state_error(state: dict[str, Any]) -> None:
    """No panic: a decider with it goes on, or says that it is none."""
    try:
        one = decider(**state)
        one.advance(1, MOST)
        for sequence in (8, 9, 10, MOST):
            one.decide_batch([page(sequence=sequence, words=1, body_hash=sequence, url=sequence)])
            one.raise_stopped()
        one.remove_expired(9)
        one.state()
    except StateError:
        return
    assert one.holds(MOST) in {True, False}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda one: one.decide_batch([1]), TypeError),
        (lambda one: one.decide_batch(None), TypeError),
        (lambda one: one.apply([page()], [(True, None, b"no copy")]), StateError),
        (lambda one: one.apply([page()], [(True, None)]), (TypeError, ValueError)),
        (lambda one: one.remove(7), KeyError),
        (lambda one: one.remove("7"), TypeError),
        (lambda one: one.entry(1 << 63), OverflowError),
        (lambda one: one.set_rule(RULE), TypeError),
        (lambda one: one.set_keep(-1, None), OverflowError),
        (lambda one: one.advance(0, 1 << 63), OverflowError),
        (lambda one: one.correct(-1, 0, True), OverflowError),
        (lambda one: one.candidates(entry()), TypeError),
        (lambda one: one.piece(-1, 1), OverflowError),
        (lambda one: one.take_outcome(), StateError),
        (lambda one: one.answer([]), StateError),
    ],
)
def test_a_call_that_cannot_be_is_refused(
    call: Callable[[_native.Decider], object], error: type[Exception] | tuple[type[Exception], ...]
) -> None:
    """The decider is as it was, and decides on."""
    one = decider()
    with pytest.raises(error):
        call(one)
    assert one.decide_batch([page(sequence=9, words=1, body_hash=1)]) == [None]
    assert [kept.sequence for kept in one.young()] == [9]


def test_effects_for_fewer_pages_are_refused() -> None:
    """Pages and effects of another number contradict each other; nothing is kept."""
    one = decider()
    with pytest.raises(StateError):
        one.apply([page(), page(sequence=2)], [(True, None, None)])
    assert len(one) == 0


def test_an_effect_on_an_entry_that_there_is_not_ends_a_decider() -> None:
    """It has a part of the page: it says so, and decides nothing more."""
    one = decider()
    with pytest.raises(KeyError):
        one.apply([page()], [(True, 77, None)])
    assert one.decide_batch([page(sequence=9, words=1, body_hash=1)]) == []
    with pytest.raises(StateError, match="open its state again"):
        one.raise_stopped()


class Odd:
    """A rule whose attributes may be anything."""

    conditions, combined, verified, keys, guards = RULE.conditions, RULE.combined, RULE.verified, RULE.keys, NO_GUARDS

    def __init__(self, **other: object) -> None:
        self.__dict__.update(other)


class Bound:
    """A condition with any bounds."""

    def __init__(self, words: object, body: object) -> None:
        self.words, self.body = words, body


@pytest.mark.parametrize(
    "other",
    [
        {"conditions": (), "keys": False},
        {"conditions": 7},
        {"conditions": [Bound(None, None)]},
        {"conditions": [Bound(-1, None)]},
        {"conditions": [Bound("3", None)]},
        {"combined": 7},
        {"verified": [7]},
        {"keys": "yes"},
        {"guards": None},
    ],
)
def test_a_rule_that_is_none_is_refused(other: dict[str, object]) -> None:
    """It says which value is out of range, or which there is not."""
    with pytest.raises((ConfigurationError, AttributeError)):
        _native.Rule(Odd(**other))  # type: ignore[arg-type]


def test_pages_of_a_rule_are_of_its_types() -> None:
    """Common sentences are unsigned 32-bit."""
    side = entry()
    for wrong in ([-1], [1 << 32], ["1"], None):
        with pytest.raises((TypeError, OverflowError)):
            _native.Rule(RULE).compare(side, side, wrong)  # type: ignore[arg-type]


def test_tables_are_built_from_a_store_and_given_once(tmp_path: Path) -> None:
    """Slots and levels are as of a decider; tables that were given away are no tables any more."""
    store, rule = _native.PageStore.create(tmp_path / "store", _native.StoreLabel("log", "space")), _native.Rule(RULE)
    for slots, levels in ((0, 8), (65, 8), (8, 0), (8, 33)):
        with pytest.raises(ConfigurationError):
            _native.TablesBuild(store, rule, slots, levels, 1)
    with pytest.raises(TypeError):
        _native.TablesBuild(store, RULE, 8, 8, 1)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        _native.TablesBuild(store, rule, 8, 8, -1)
    for threads in (0, 1, 1_000_000):
        assert _native.TablesBuild(store, rule, 2, LEVELS, threads).step(0xFFFF_FFFF) == 0
    build = _native.TablesBuild(store, rule, 2, LEVELS, 1)
    with pytest.raises(OverflowError):
        build.step(-1)
    decider(store=store, tables=build)
    with pytest.raises(StateError, match="given away"):
        build.step(1)
    with pytest.raises(StateError, match="given away"):
        decider(store=store, tables=build)
    store.close()
    with pytest.raises(StateError):
        _native.TablesBuild(store, rule, 2, LEVELS, 1)


ALMOST = [content(number)[1] for number in (1, 13, 17)]
EVIDENCE = st.binary(max_size=600) | st.builds(
    lambda packed, at, byte: packed[:at] + bytes([byte]) + packed[at + 1 :],
    st.sampled_from(ALMOST),
    st.integers(0, 299),
    st.integers(0, 255),
)
STRANGERS = st.lists(st.tuples(st.integers(0, 99), EVIDENCE, st.binary(max_size=600)), min_size=1, max_size=20)


@settings(max_examples=60)
@given(st.sampled_from(["balanced", "broad", "precise", "simhash"]), STRANGERS, st.integers(1, 20))
def test_evidence_of_strangers_stops_nobody(profile: str, strangers: list[tuple[int, bytes, bytes]], size: int) -> None:
    """Whatever bytes a record has as evidence and keys: each page has a verdict, and so has each page behind it."""
    rule = replace(PROFILES[profile], guards=Guards(max_titles=1, max_hosts=1))
    run, again = (Run(rule, IndexLayout(slots=2, window=3)) for _ in range(2))
    pages = [
        replace(
            page_at(seed),
            evidence=evidence,
            keys=keys,
            fingerprint=Fingerprint(seed % 3, 1),
            body_hash=seed,
            reason=None,
        )
        for seed, evidence, keys in strangers
    ]
    for first in range(0, len(pages), size):
        part = [*pages[first : first + size], page_at(first)]
        assert run.decide(part, batch=True) == again.decide(part)
    assert run.snapshot() == again.snapshot()
    for _, evidence, _ in strangers:
        strange, usual = entry(words=1, evidence=evidence), entry(words=1, evidence=ALMOST[0], host=1)
        _native.Rule(rule).compare(strange, usual, [1, 2])
        assert Evidence(evidence).shingles >= 0


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("batch", [True, False])
def test_a_page_at_which_a_fault_panics_is_undecided(at: int, batch: bool) -> None:
    """It is passed on, adds no entry and says what happened; all others have the verdicts of a log without it."""
    run, without = (Run(RULE, IndexLayout(slots=2, window=2)) for _ in range(2))
    pages = [page_at(number) for number in (3, 5, 3, 8)]
    run.decider._native.panic_at(at + 1)
    decisions = run.decide(pages, batch=batch)
    faulty = decisions[at]
    assert (faulty.verdict.kind, faulty.kept) == (VerdictKind.UNDECIDED, False)
    assert "on purpose" in (faulty.verdict.reason or "")
    assert not run.decider.holds(at + 1)
    nothing = replace(pages[at], body_hash=None, fingerprint=Fingerprint())
    expected = without.decide([nothing if place == at else page for place, page in enumerate(pages)])
    assert [made for place, made in enumerate(decisions) if place != at] == [
        made for place, made in enumerate(expected) if place != at
    ]
    replayed = Run(RULE, IndexLayout(slots=2, window=2))
    replayed.replay(pages, decisions)
    assert replayed.snapshot() == run.snapshot()
    later = [page_at(number) for number in range(20)]
    assert run.decide(later, batch=batch) == replayed.decide(later)


def test_what_stops_a_batch_leaves_the_pages_before_it(tmp_path: Path) -> None:
    """They have their verdicts, and then the error comes; the next batch has its own."""
    store, rule = _native.PageStore.create(tmp_path / "store", _native.StoreLabel("log", "space")), _native.Rule(RULE)
    one = decider(store=store, tables=_native.TablesBuild(store, rule, 2, LEVELS, 1), window=1)
    one.raise_stopped()
    assert one.decide_batch([page(sequence=at, words=at, body_hash=at, url=at) for at in range(3)]) == [None] * 3
    one.raise_stopped()
    store.close()
    several = [page(sequence=at, words=at, body_hash=at, url=at) for at in range(3, 2000)]
    assert len(one.decide_batch(several)) < len(several)
    with pytest.raises(StateError):
        one.raise_stopped()
    one.raise_stopped()


def test_a_correction_of_any_addresses_is_in_force() -> None:
    """A URL may be called a copy of itself, or of one that nobody has seen."""
    run = Run(RULE, IndexLayout(slots=2, window=2))
    url = page_at(3).page.canonical_url
    for original in (url, "http://nobody/"):
        run.decider.correct(CorrectionRecord(url, original, duplicate=True, reason=""))
    assert run.decide([page_at(3)])[0].kept
