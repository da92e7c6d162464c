"""twinsieve: a streaming near-duplicate filter for web crawlers.

    from dedup_service import NearDuplicateFilter

    with NearDuplicateFilter.open("state") as dedup:
        verdict = dedup.check_html(html, url)

The public names are listed in `__all__`. Each is loaded on first use, so that `twinsieve --help`, and a settings file
that only names the Scrapy add-on, import nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dedup_service.core.errors import ConfigurationError, InternalError, RecordError, StateError, TwinsieveError
    from dedup_service.core.evidence.card import Card, Ramps
    from dedup_service.core.evidence.similarity import Combined
    from dedup_service.core.extraction import Extraction, extract, to_page
    from dedup_service.core.index import CellStatistics, IndexStatistics
    from dedup_service.core.log_records import CorrectionRecord
    from dedup_service.core.page import Fingerprint, Page, PreparedPage
    from dedup_service.core.rules.guards import Guards
    from dedup_service.core.rules.keep import Keep
    from dedup_service.core.rules.match_row import MatchRow
    from dedup_service.core.rules.profiles import PROFILES, rule_for
    from dedup_service.core.rules.rule import DistanceBound, MatchRule
    from dedup_service.core.verdict import Action, Distance, Guard, Verdict, VerdictKind
    from dedup_service.runtime.embedded.corrections import Correction
    from dedup_service.runtime.embedded.database import (
        ForeignStateError,
        StateClosedError,
        StateDamagedError,
        StateFullError,
        StateInUseError,
    )
    from dedup_service.runtime.embedded.filter import NearDuplicateFilter
    from dedup_service.runtime.embedded.state_info import StateInfo
    from dedup_service.runtime.events import (
        BatchEvent,
        IndexEvent,
        Observer,
        PageDecided,
        ProblemEvent,
        RemovalEvent,
        RestoreEvent,
    )
    from dedup_service.runtime.memory_limit import MemoryLimitError
    from dedup_service.runtime.resources import SpaceOptions, prepare

__all__ = [
    "PROFILES",
    "Action",
    "BatchEvent",
    "Card",
    "CellStatistics",
    "Combined",
    "ConfigurationError",
    "Correction",
    "CorrectionRecord",
    "Distance",
    "DistanceBound",
    "Extraction",
    "Fingerprint",
    "ForeignStateError",
    "Guard",
    "Guards",
    "IndexEvent",
    "IndexStatistics",
    "InternalError",
    "Keep",
    "MatchRow",
    "MatchRule",
    "MemoryLimitError",
    "NearDuplicateFilter",
    "Observer",
    "Page",
    "PageDecided",
    "PreparedPage",
    "ProblemEvent",
    "Ramps",
    "RecordError",
    "RemovalEvent",
    "RestoreEvent",
    "SpaceOptions",
    "StateClosedError",
    "StateDamagedError",
    "StateError",
    "StateFullError",
    "StateInUseError",
    "StateInfo",
    "TwinsieveError",
    "Verdict",
    "VerdictKind",
    "extract",
    "prepare",
    "rule_for",
    "to_page",
]

_NAMES_OF_MODULES = {
    "dedup_service.core.errors": ("ConfigurationError", "InternalError", "RecordError", "StateError", "TwinsieveError"),
    "dedup_service.core.evidence.card": ("Card", "Ramps"),
    "dedup_service.core.evidence.similarity": ("Combined",),
    "dedup_service.core.extraction": ("Extraction", "extract", "to_page"),
    "dedup_service.core.index": ("CellStatistics", "IndexStatistics"),
    "dedup_service.core.log_records": ("CorrectionRecord",),
    "dedup_service.core.page": ("Fingerprint", "Page", "PreparedPage"),
    "dedup_service.core.rules.guards": ("Guards",),
    "dedup_service.core.rules.keep": ("Keep",),
    "dedup_service.core.rules.match_row": ("MatchRow",),
    "dedup_service.core.rules.profiles": ("PROFILES", "rule_for"),
    "dedup_service.core.rules.rule": ("DistanceBound", "MatchRule"),
    "dedup_service.core.verdict": ("Action", "Distance", "Guard", "Verdict", "VerdictKind"),
    "dedup_service.runtime.embedded.corrections": ("Correction",),
    "dedup_service.runtime.embedded.database": (
        "ForeignStateError",
        "StateClosedError",
        "StateDamagedError",
        "StateFullError",
        "StateInUseError",
    ),
    "dedup_service.runtime.embedded.filter": ("NearDuplicateFilter",),
    "dedup_service.runtime.embedded.state_info": ("StateInfo",),
    "dedup_service.runtime.events": (
        "BatchEvent",
        "IndexEvent",
        "Observer",
        "PageDecided",
        "ProblemEvent",
        "RemovalEvent",
        "RestoreEvent",
    ),
    "dedup_service.runtime.memory_limit": ("MemoryLimitError",),
    "dedup_service.runtime.resources": ("SpaceOptions", "prepare"),
}
_MODULES = {name: module for module, names in _NAMES_OF_MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
