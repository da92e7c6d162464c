"""The audit trail of corrections: what a person said of two pages, who, when and why, and whether it is in force.

A correction is a record of the log, so it is applied wherever the log is read (`core.decision.overrides`); its author
and time change no verdict. The last correction on a pair is in force, and a page is a duplicate of one other page.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.log_records import CorrectionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A correction in the log.

    Attributes:
        sequence: Its place in the log; None if it is not known.
        record: What was said of which pages.
        at: When it was said, in Unix seconds; None if it is not known.
        by: Who said it; None if it is not known.
        in_force: Whether no later correction contradicts it.
    """

    sequence: int | None
    record: CorrectionRecord
    at: float | None = None
    by: str | None = None
    in_force: bool = True


class _Detail(msgspec.Struct, omit_defaults=True):
    url: str
    of: str
    duplicate: bool
    reason: str = ""
    by: str | None = None
    at: float | None = None


def written_detail(record: CorrectionRecord, by: str | None, at: float | None) -> str:
    """Return a correction as JSON, as a journal stores it."""
    line = _Detail(record.url, record.original, record.duplicate, record.reason, by, at)
    return json.dumps(msgspec.to_builtins(line))  # a page may have a lone surrogate in its URL, which UTF-8 has not


def read_detail(sequence: int, detail: str) -> Correction:
    """Return the correction that `written_detail` wrote at `sequence`; ValueError if `detail` is not a correction."""
    line = msgspec.convert(json.loads(detail), _Detail)
    record = CorrectionRecord(line.url, line.of, line.duplicate, line.reason)
    return Correction(sequence=sequence, record=record, at=line.at, by=line.by)


def with_force(corrections: Iterable[Correction]) -> list[Correction]:
    """Return the corrections of a whole log, in its order, each with whether it is in force at the end."""
    audit_trail: Sequence[Correction] = list(corrections)
    in_force = set(map(id, Overrides(correction.record for correction in audit_trail).records))
    return [replace(correction, in_force=id(correction.record) in in_force) for correction in audit_trail]
