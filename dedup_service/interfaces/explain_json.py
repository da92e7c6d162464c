"""Convert an explanation to the JSON of `/api/why` and `twinsieve why --json`, as docs/why.md defines it.

All strings of a page are truncated and cleaned here, because both outputs are displayed.
Invariant: the result is of bounded size, whatever the pages contain.
"""

import math
from collections.abc import Iterable
from typing import Any

from dedup_service.core.evidence.packed import Evidence
from dedup_service.core.explain.channels import BlockView, ChannelView, FeatureComparison
from dedup_service.core.explain.pair import PairView
from dedup_service.core.explain.rule_table import BoundView, RowView
from dedup_service.core.explain.score import ScoreView
from dedup_service.core.fingerprinter import Feature
from dedup_service.core.page import CHANNELS
from dedup_service.core.rules.match_row import QUANTITIES
from dedup_service.core.rules.profiles import rule_text
from dedup_service.core.verdict import Verdict
from dedup_service.interfaces.text_diff import Piece, Spans, passages, unshared_numbers
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.explain.explainer import Explanation, PairExplained
from dedup_service.runtime.explain.page_source import KnownPage
from dedup_service.runtime.live_stats.display_safe import (
    MAX_TITLE,
    MAX_URL,
    MAX_WORDS,
    cut,
    harmless,
    host_of,
    shown,
)

VERSION = 1
MAX_LETTERS = 20_000
"""Characters of each text that are compared and included."""

EXCERPT = 1000
"""Characters of the text itself that are included."""
MAX_NUMBERS, MAX_DIGITS = 50, 60
JUDGEMENTS = {True: "duplicate", False: "apart", None: None}
BOUND_KINDS = {True: "at least", False: "at most"}


def explanation_to_dict(explanation: Explanation) -> dict[str, Any]:
    """Return `explanation` with the fields of docs/why.md."""
    return {
        "version": VERSION,
        "page": _page(explanation.page, explanation.text, kept=explanation.kept),
        "verdict": _verdict(explanation.page),
        "first_verdict": None if explanation.visit is None else _verdict(explanation.visit),
        "decided_by": explanation.decided_by,
        "match": None if explanation.match is None else _pair(explanation, explanation.match),
        "neighbours": [_pair(explanation, neighbour) for neighbour in explanation.neighbours],
        "space": explanation.space_id,
        "policy": {"text": rule_text(explanation.in_force.rule), "since": explanation.in_force.since},
        "corrections": [correction_to_dict(correction) for correction in explanation.corrections],
        "notes": [_clean(note, 2 * MAX_URL) for note in explanation.notes],
    }


def correction_to_dict(correction: Correction) -> dict[str, Any]:
    """Return `correction` with the fields of docs/why.md."""
    record = correction.record
    return {
        "sequence": correction.sequence,
        "at": None if correction.at is None else round(correction.at, 3),
        "by": None if correction.by is None else _clean(correction.by, MAX_WORDS),
        "url": _clean(record.url, MAX_URL),
        "of": _clean(record.original, MAX_URL),
        "duplicate": record.duplicate,
        "reason": _clean(record.reason, MAX_WORDS),
        "in_force": correction.in_force,
    }


def _page(page: KnownPage, text: str | None, *, kept: bool) -> dict[str, Any]:
    evidence = Evidence(page.entry.evidence)
    return {
        "sequence": page.sequence,
        "id": _clean(page.id, MAX_WORDS),
        "url": _clean(page.url, MAX_URL),
        "canonical_url": _clean(page.canonical_url, MAX_URL),
        "host": _clean(host_of(cut(page.url, MAX_URL)), MAX_WORDS),
        "title": _clean(page.title, MAX_TITLE),
        "kept": kept,
        "fingerprint": {name: _hex(getattr(page.entry, name)) for name in CHANNELS},
        "letters": evidence.letters,
        "letters_counted": evidence.size,
        "shingles": evidence.shingles,
        "numbers": evidence.number_count,
        "sentences": evidence.sentence_count,
        "text": None if text is None else {"length": len(text), "excerpt": _clean(text, EXCERPT)},
    }


def _verdict(page: KnownPage) -> dict[str, Any] | None:
    verdict: Verdict | None = page.verdict
    if verdict is None:
        return None
    of_url, of_base = verdict.duplicate_of_url, verdict.duplicate_of_base
    base = {} if of_base is None else {"of_base": _clean(of_base, MAX_URL)}
    return base | {
        "kind": verdict.kind.value,
        "reason": None if verdict.reason is None else _clean(verdict.reason, MAX_URL),
        "guard": None if verdict.guard is None else verdict.guard.value,
        "score": verdict.score,
        "distance": {"words": verdict.distance.words, "body": verdict.distance.body},
        "of": page.original,
        "of_url": None if of_url is None else _clean(of_url, MAX_URL),
    }


def _pair(explanation: Explanation, pair: PairExplained) -> dict[str, Any]:
    view = pair.view
    return {
        "other": _page(pair.other, pair.text, kept=pair.kept),
        "matches": view.matches,
        "row": view.row,
        "why_not": view.why_not,
        "judged": JUDGEMENTS[view.override],
        "channels": [_channel(channel) for channel in view.channels],
        "keys": {
            "used": view.keys_used,
            "shared": [f"{key:08x}" for key in view.shared_keys],
            "one": view.keys[0],
            "other": view.keys[1],
        },
        "found_by": list(view.found_by),
        "likeness": {name: _number(getattr(view.similarity, name)) for name in QUANTITIES},
        "rows": _rows(view),
        "nearest_row": None if view.nearest is None else view.nearest.name,
        "score": _score(view.score),
        "features": None if pair.features is None else _features(pair.features),
        "host_letters": {"one": view.host_letters[0], "other": view.host_letters[1]},
        **_texts(explanation.text, pair.text, pair.host_spans),
    }


def _channel(view: ChannelView) -> dict[str, Any]:
    return {
        "channel": view.channel,
        "one": _hex(view.one),
        "other": _hex(view.other),
        "distance": view.distance,
        "bits": list(view.bits),
        "radius": view.radius,
        "found": view.found,
        "table": view.table,
        "blocks": [_block(block) for block in view.blocks],
    }


def _block(block: BlockView) -> dict[str, Any]:
    return {
        "block": block.block,
        "bits": list(block.bits),
        "one": f"{block.one:0{block.size // 4}x}",
        "other": f"{block.other:0{block.size // 4}x}",
        "differing": block.differing,
        "tolerance": block.tolerance,
        "next_tolerance": block.next_tolerance,
        "agrees": block.agrees,
    }


def _rows(view: PairView) -> list[dict[str, Any]]:
    deciding = next((row for row in view.rows if row.holds and row.name == view.row), None)
    return [_row(row, decides=row is deciding) for row in view.rows]


def _row(row: RowView, *, decides: bool) -> dict[str, Any]:
    bounds = [_bound(bound) for bound in row.bounds]
    return {"name": row.name, "holds": row.holds, "decides": decides, "bounds": bounds}


def _bound(bound: BoundView) -> dict[str, Any]:
    return {
        "quantity": bound.quantity,
        "asks": BOUND_KINDS[bound.at_least],
        "bound": bound.bound,
        "value": _number(bound.value),
        "holds": bound.holds,
    }


def _score(score: ScoreView | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        "sum": round(score.sum, 4),
        "probability": round(score.probability, 4),
        "row": score.row,
        "bound": score.bound.bound,
        "holds": score.bound.holds,
        "intercept": round(score.intercept, 4),
        "quantities": [
            {"name": quantity.name, "value": _number(quantity.value), "points": round(quantity.points, 4)}
            for quantity in score.quantities
        ],
    }


def _features(comparison: FeatureComparison) -> dict[str, Any]:
    return {
        "shared": [
            {"word": _word(both.one), "one": _weight(both.one), "other": _weight(both.other)}
            for both in comparison.shared
        ],
        "one": [{"word": _word(feature), "weight": _weight(feature)} for feature in comparison.one],
        "other": [{"word": _word(feature), "weight": _weight(feature)} for feature in comparison.other],
    }


def _weight(feature: Feature) -> dict[str, Any]:
    return {
        "weight": round(feature.weight, 4),
        "count": feature.count,
        "idf": feature.idf,
        "factors": dict(feature.factors),
    }


def _texts(one: str | None, other: str | None, host_spans: tuple[Spans, Spans]) -> dict[str, Any]:
    """Return the fields that need both texts."""
    if one is None or other is None:
        return {"numbers": None, "passages": None, "cut": False}
    left, right = one[:MAX_LETTERS], other[:MAX_LETTERS]
    left_numbers, right_numbers = unshared_numbers(left, right)
    return {
        "numbers": {"one": _first(left_numbers), "other": _first(right_numbers)},
        "passages": [
            {"alike": passage.alike, "one": _pieces(passage.left), "other": _pieces(passage.right)}
            for passage in passages(left, right, host_spans)
        ],
        "cut": len(one) > MAX_LETTERS or len(other) > MAX_LETTERS,
    }


def _first(numbers: list[str]) -> list[str]:
    return [cut(number, MAX_DIGITS) for number in numbers[:MAX_NUMBERS]]


def _pieces(pieces: Iterable[Piece]) -> list[dict[str, Any]]:
    return [{"text": harmless(piece.text), "alike": piece.alike, "host": piece.host} for piece in pieces]


def _word(feature: Feature) -> str:
    return _clean(feature.word, MAX_WORDS)


def _clean(text: str, limit: int) -> str:
    return shown(cut(text, limit))


def _hex(value: int | None) -> str | None:
    return None if value is None else f"{value:016x}"


def _number(value: Any) -> float | int | None:
    """Return `value` rounded, or None if it is not finite: JSON has no infinity."""
    if isinstance(value, int):
        return value
    number = float(value)
    return round(number, 4) if math.isfinite(number) else None
