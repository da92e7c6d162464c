"""The size of a message as a broker sees it: the client's own batch of one record."""

from collections.abc import Callable

from kafka import codec
from kafka.record.default_records import DefaultRecordBatchBuilder

from dedup_service.runtime.kafka.client.producers import Message

CODECS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": codec.gzip_encode,
    "snappy": codec.snappy_encode,
    "lz4": codec.lz4_encode,
    "zstd": codec.zstd_encode,
}


def batch_bytes(message: Message, compression: str = "none") -> int:
    """Return the bytes of the batch in which the producer sends `message` alone."""
    return sent_bytes(message.value, message.key, message.headers, compression)


def sent_bytes(
    value: bytes | None, key: bytes | None, headers: tuple[tuple[str, bytes], ...], compression: str = "none"
) -> int:
    """As `batch_bytes`, for the parts of a message.

    A batch that compression enlarges is sent as it is; the size is that of the compressed one, since a broker
    may compress it (`compression.type` of the topic).
    """
    builder = DefaultRecordBatchBuilder(2, 0, 1, 1, 1, 1, 1 << 30)
    builder.append(0, 0, key, value, list(headers))
    batch, head = bytes(builder.build()), builder.HEADER_STRUCT.size
    return head + len(CODECS[compression](batch[head:]))
