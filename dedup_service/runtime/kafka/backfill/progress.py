"""How far a backfill is in each of its files: messages in `dedup.offsets`, written with the pages.

A file has a number in its backfill, from 1; the backfill itself has the message of number 0, which says who runs it and
what it writes. Key: `backfill/NAME/3`; the latest message of a key counts. Value, JSON, of which readers of steps'
offsets understand the first five fields:

    {"step":"backfill","topic":"backfill:2024:1f9a…","partition":3,"offset":120,"v":1,
     "file":"/data/a.jsonl","last":"…","pages":118,"bad":2,"begins":48210,"ends":48630}

The first `offset` records of the file are done. `last` identifies the last one of them: a file that has another record
there is not the file that was begun. It begins and ends at positions that the reader of the file understands (`Mark`),
so a run that goes on need not read what is before it; files of a folder are counted.

Invariant: whoever writes such a message holds the transactional id of the backfill, and has read this topic since.
"""

from hashlib import blake2b
from typing import Annotated

import msgspec

from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.messages.headers import offset_headers
from dedup_service.runtime.kafka.state.step_offsets import StepOffsets
from dedup_service.runtime.kafka.topics import Topics

_STEP = "backfill"
_VERSION = 1


_Place = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_NAMES = {"name": "file", "number": "partition", "records": "offset"}


class BackfilledFile(msgspec.Struct, frozen=True, kw_only=True, rename=_NAMES):
    """How far a backfill is in a file.

    number: of the file in the backfill, from 1. records: that are done, `pages` and `bad` ones. last: digest of the
    last of them, "" before any. begins, ends: positions of the last one in the file, None if they are not known.
    """

    name: str
    number: Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
    records: _Place = 0
    last: str = ""
    pages: int = 0
    bad: int = 0
    begins: _Place | None = None
    ends: _Place | None = None


class BackfillRun(msgspec.Struct, frozen=True):
    """Who runs a backfill, and what for. topic: of the sources of its pages. outputs: as the option of the command."""

    topic: str
    outputs: str
    run: str


def digest_of(identity: bytes) -> str:
    """Return the digest of a record's identity.

    >>> digest_of(b"a line")
    'e873e462364c8630'
    """
    return blake2b(identity, digest_size=8).hexdigest()


class BackfillProgress(StepOffsets):
    """The progress of the backfill `name`, as last read. run: None if there was none."""

    def __init__(self, connection: Connection, topics: Topics, name: str) -> None:
        super().__init__(connection, topics)
        self._key = f"{_STEP}/{name}/"
        self.run: BackfillRun | None = None
        self.files: dict[str, BackfilledFile] = {}
        self.next_number = 1
        """Number of the next file that is begun."""

    def run_message(self, run: BackfillRun) -> Message:
        """Return the message that says that `run` goes on with the backfill."""
        return self._message(run.topic, 0, 0, run)

    def file_message(self, topic: str, file: BackfilledFile) -> Message:
        """Return the message that says how far a file is."""
        return self._message(topic, file.number, file.records, file)

    def note(self, file: BackfilledFile) -> None:
        """Take it that the message about a file is committed."""
        self.files[file.name] = file
        self.next_number = max(self.next_number, file.number + 1)

    def _message(self, topic: str, number: int, records: int, said: BackfillRun | BackfilledFile) -> Message:
        key = f"{self._key}{number}"
        headers = offset_headers(f"{key}/{records}", self._topics.offsets)
        fields = {"topic": topic, "partition": number, "offset": records, "step": _STEP, "v": _VERSION}
        value = msgspec.json.encode(fields | msgspec.to_builtins(said))
        return Message(self._topics.offsets, value, key.encode(), headers, partition=0)

    def _take_one(self, key: bytes | None, value: bytes) -> None:
        if key is None or not key.startswith(self._key.encode()):
            super()._take_one(key, value)
        elif key == f"{self._key}0".encode():
            self.run = msgspec.json.decode(value, type=BackfillRun)
        else:
            self.note(msgspec.json.decode(value, type=BackfilledFile))
