"""`twinsieve` with small messages, so that a few hundred pages are many messages of the log and answers have parts.

    python -m tests.chaos.small_messages serve …

A fingerprinter appends MAX_PAGES pages at most, so that the window of a log may be as short; an answer of a shard is
cut every PART_BYTES. Nothing else differs from `tests.impatient_serve`.
"""

from dedup_service.interfaces.cli.main import main
from dedup_service.runtime.kafka.messages import shard_messages
from dedup_service.runtime.kafka.steps.fingerprinting import FingerprintSettings
from dedup_service.runtime.kafka.steps.in_flight import InFlightLimits
from tests.impatient_serve import be_impatient, set_default

MAX_PAGES = 24
PART_BYTES = 256


if __name__ == "__main__":
    be_impatient()
    set_default(InFlightLimits, "chunk_records", MAX_PAGES // 3)
    set_default(FingerprintSettings, "batch_records", MAX_PAGES)
    shard_messages.MAX_PART_BYTES = PART_BYTES
    main()
