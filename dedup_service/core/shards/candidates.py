"""The settled entries of a resolver: what all shards answer of them. The window it has itself.

    candidates.answer(answers)          # of all shards, for one message of the log
    ...                                 # the replica applies the message
    outcome = candidates.take_outcome(offset)

An entry settles here when it settles in its shard: from then on the shard answers for it
(`native/src/decider/answered.rs`).

Invariant: what is found for a page is what one process with all entries would find.
"""

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from dedup_service import _native
from dedup_service.core.decision.decider import DeciderState, MutablePageNames
from dedup_service.core.errors import StateError
from dedup_service.core.log_records import Policy
from dedup_service.core.shards.answers import MessageAnswer
from dedup_service.core.shards.outcomes import EntryRemoval, MessageOutcome


class AnswersDifferError(StateError):
    """Answers to one message are of different logs, or of shards in different states."""


class _State(msgspec.Struct, tag_field="of", tag="resolver"):
    """What a snapshot has beside window and removed entries; the tag tells it from the state of a shard.

    shards: how many have answered. answered: of the native decider.
    """

    shards: int
    answered: bytes


class ShardCandidates:
    """The settled entries of a policy's log, with the state of its decider. shards: how many there are."""

    def __init__(self, policy: Policy, state: DeciderState, shards: int) -> None:
        self._shards = shards
        self._decider: _native.Decider | None = None
        self._names: dict[int, tuple[str, str]] = {}
        self.begun: tuple[int, int, bytes | None]
        if state.candidates:
            self.begun = shards, 0, msgspec.msgpack.decode(state.candidates, type=_State).answered
        else:
            self.begun = shards, sum(base.entries for base in policy.bases) - len(state.young), None

    def opened(self, decider: _native.Decider) -> None:
        """Take the decider that was made with `begun`."""
        self._decider = decider

    def answer(self, answers: Sequence[MessageAnswer]) -> None:
        """Take the answers of all shards to the message that is applied next.

        AnswersDifferError if they are not of the same message and pages.
        """
        heads = {(answer.offset, answer.first, len(answer.batches), answer.record is None) for answer in answers}
        if len(answers) != self._shards or len(heads) != 1:
            raise AnswersDifferError(
                f"{len(answers)} of {self._shards} shards have answered to messages and pages {sorted(heads)}: all of "
                "them have to answer to the same"
            )
        self._native.answer([(answer.batches, answer.record, answer.oldest, answer.is_all) for answer in answers])
        self._names = {sequence: name for answer in answers for sequence, name in answer.names.items()}

    def name(self, sequence: int) -> tuple[str, str] | None:
        """Return (id, URL) of an entry that the present answers have, or None."""
        return self._names.get(sequence)

    @property
    def first_young(self) -> int | None:
        """Sequence of the earliest entry of the window that is not settled, None if there is none."""
        return self._native.first_young()

    def take_outcome(self, offset: int) -> MessageOutcome:
        """Return what the message at `offset`, which was applied, has done to the entries.

        StateError if it has fewer pages than the shards have answered for.
        """
        first, kept, removed = self._native.take_outcome()
        return MessageOutcome(offset, first, kept, tuple(map(EntryRemoval._make, removed)))

    def state(self) -> bytes:
        """Return what is needed beside the rest of the decider's state to go on."""
        return msgspec.msgpack.encode(_State(self._shards, self._native.answered_state() or b""))

    @property
    def _native(self) -> _native.Decider:
        if self._decider is None:
            raise RuntimeError("no decider has these candidates")
        return self._decider


class AnsweredNames:
    """The names of entries: those in the answers, and those of `names` for entries of the window."""

    def __init__(self, names: MutablePageNames) -> None:
        self._names = names
        self.candidates: ShardCandidates | None = None

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`."""
        answered = None if self.candidates is None else self.candidates.name(sequence)
        return answered or self._names.name(sequence)

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Store the id and URL of the kept page at `sequence`."""
        self._names.add(sequence, page_id, url)

    def erase(self, sequence: int) -> None:
        """Erase the id and URL of the page at `sequence`, which was retracted."""
        self._names.erase(sequence)


def shards_in(state: DeciderState) -> int | None:
    """Return how many shards answered to the resolver whose state it is; None for a state of none."""
    try:
        return msgspec.msgpack.decode(state.candidates, type=_State).shards or None
    except (ValueError, msgspec.MsgspecError):
        return None


def differing(one: bytes, other: bytes) -> int | None:
    """Return the first place in which two answers differ, None if they are the same."""
    if one == other:
        return None
    return bisect_right(range(min(len(one), len(other))), 0, key=lambda end: int(one[: end + 1] != other[: end + 1]))
