"""`twinsieve` with small messages, so that a few hundred pages are many messages of the log and answers have parts.

    python -m tests.chaos.small_messages serve …

A fingerprinter appends MAX_PAGES pages at most, so that the window of a log may be as short; an answer of a shard is
cut every PART_BYTES. Nothing else differs from `twinsieve`.
"""

from typing import Any

from dedup_service.interfaces.cli.main import main
from dedup_service.runtime.kafka.messages import shard_messages
from dedup_service.runtime.kafka.steps.fingerprinting import FingerprintSettings
from dedup_service.runtime.kafka.steps.in_flight import InFlightLimits

MAX_PAGES = 24
PART_BYTES = 256


def _set_default(settings: Any, name: str, value: int) -> None:
    assert name in settings.__init__.__kwdefaults__
    settings.__init__.__kwdefaults__[name] = value


if __name__ == "__main__":
    _set_default(InFlightLimits, "chunk_records", MAX_PAGES // 3)
    _set_default(FingerprintSettings, "batch_records", MAX_PAGES)
    shard_messages.MAX_PART_BYTES = PART_BYTES
    main()
