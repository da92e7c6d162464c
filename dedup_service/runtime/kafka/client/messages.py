"""A message to send, as a value."""

from dataclasses import dataclass

__all__ = ["Message"]


@dataclass(frozen=True, slots=True)
class Message:
    """What to write where; `partition` None lets the key choose it (no key: any), as every Kafka client would."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of key, value and headers, before compression."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return len(self.value or b"") + len(self.key or b"") + headers
