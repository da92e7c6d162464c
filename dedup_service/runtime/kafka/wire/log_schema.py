"""The JSON objects of the log `fingerprints`, version 1, as typed structs: one for each kind of record.

Short, because a restore reads all of them: a name that equals `url` is null, and what has its default is left out.
"""

import msgspec

__all__ = [
    "VERSION",
    "AnyLine",
    "CorrectionLine",
    "LogLine",
    "PageLine",
    "PolicyLine",
    "RejectedLine",
    "RetractionLine",
]

VERSION = 1


class LogLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="kind"):
    """What every record has: its kind and the version of its schema."""

    v: int


class PageLine(LogLine, frozen=True, tag="page"):
    """A page. words, body, body_hash: 16 hexadecimal digits. evidence: base64. id, canonical_url: null where `url`."""

    topic: str
    partition: int
    offset: int
    space: str
    url: str
    id: str | None = None
    canonical_url: str | None = None
    title: str = ""
    words: str | None = None
    body: str | None = None
    body_hash: str | None = None
    evidence: bytes = b""
    reason: str | None = None


class RejectedLine(LogLine, frozen=True, tag="rejected"):
    """An input record that describes no page."""

    topic: str
    partition: int
    offset: int
    problem: str


class RetractionLine(LogLine, frozen=True, tag="retraction"):
    """A kept page leaves. url: canonical."""

    url: str
    reason: str = ""


class CorrectionLine(LogLine, frozen=True, tag="correction"):
    """A person's judgement. url, of: canonical."""

    url: str
    of: str
    duplicate: bool
    reason: str = ""


class NearLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A condition of a rule: bits in each channel."""

    words: int | None = None
    body: int | None = None


class AlikeLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row of a rule's table: see `core.alike`."""

    name: str
    jaccard: float
    least_letters: int = 0
    containment: float | None = None
    title: float | None = None
    sentences: float | None = None
    numbers: float | None = None
    missing_numbers: float | None = None
    length_ratio: float | None = None


class GuardsLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What matches a rule does not believe: see `core.guards`."""

    most_pages: int = 0
    most_hosts: int = 0
    most_titles: int = 0
    jump_percent: int = 0


class RuleLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A match rule, as `MatchRule.to_dict` writes it. Strict: half a rule would give other verdicts."""

    conditions: list[NearLine] = []
    combined_mu_thousandths: int | None = None
    keys: bool = False
    verified: list[AlikeLine] = []
    guards: GuardsLine | None = None


class PolicyLine(LogLine, frozen=True, tag="policy"):
    """A policy that holds from here on."""

    rule: RuleLine
    action: str
    space: str
    initial: bool = False
    log: str | None = None


AnyLine = PageLine | RejectedLine | RetractionLine | CorrectionLine | PolicyLine
