"""The audit trail of corrections: what a person said of two pages, who, when and why, and whether it still holds.

A correction is a record of the log, so it is applied wherever the log is read (`core.decision.overrides`); who and
when stand
beside it and change nothing. The last one on a pair holds, and a page is a duplicate of one other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.log_records import CorrectionRecord

__all__ = ["Correction", "read_detail", "with_force", "written_detail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """A correction in the log.

    sequence: its place there; at: Unix seconds; by: who said it. None where that is not known. in_force: no later
    one contradicts it.
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


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Detail)


def written_detail(record: CorrectionRecord, by: str | None, at: float | None) -> str:
    """Return what a journal writes down of a correction."""
    line = _Detail(record.url, record.original, record.duplicate, record.reason, by, at)
    return _encoder.encode(line).decode()


def read_detail(sequence: int, detail: str) -> Correction:
    """Return the correction that `written_detail` wrote at `sequence`; ValueError where it is none."""
    line = _decoder.decode(detail)
    record = CorrectionRecord(line.url, line.of, line.duplicate, line.reason)
    return Correction(sequence=sequence, record=record, at=line.at, by=line.by)


def with_force(corrections: Iterable[Correction]) -> list[Correction]:
    """Return the corrections of a whole log, in its order, each with whether it is in force at the end."""
    given: Sequence[Correction] = list(corrections)
    holding = set(map(id, Overrides(correction.record for correction in given).records))
    return [replace(correction, in_force=id(correction.record) in holding) for correction in given]
