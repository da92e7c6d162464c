"""What fuzzing and reviews found, in its smallest form: each entry is a test of its parser.

An entry is the arguments of the `check` in the parser's file, under a line about what they showed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_WHOLE = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.test/\r\nContent-Length: 44\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n\r\n\r\n"
)
_TOO_SHORT = b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 1\r\n\r\nabc\r\n\r\n"

FOUND: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "encoding": {
        "the codec punycode takes quadratic time": (b"a-" * 9_000, "text/html; charset=punycode"),
        "utf-7 is no encoding of a page": (b"+AAAAAA-" * 9, "utf-7"),
    },
    "html": {
        "removing each empty element copied the text before it": ("<html><body>" + "<div></div>word" * 2_000,),
        "each nested tag link had the text of all inside it": ("<a rel=tag href=/t><div>" * 120 + "word " * 4_000,),
    },
    "http_body": {
        "a broken chunk behind a broken coding was not a BodyError": (b"1\r\na\r\nx\r\n", "chunked", "gzip", 10)
    },
    "jsonlines": {
        "deep nesting is a RecursionError of the decoder": (b'{"url":' * 9_000,),
        "a lone surrogate cannot be encoded": (b'{"url":"http://a.test/\\ud800","text":"\\udfff"}',),
    },
    "kafka_batches": {
        "zstd packs a gigabyte of zeros into kilobytes": (
            "zstd",
            b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\x00" * 999,
            1,
        )
    },
    "kafka_records": {
        "headers of a dead letter did not fit its topic": ("page", b"k", b"x", [("h", bytes(34 << 20))]),
        "hundreds of headers take memory": ("page", None, b"{}", [("", None)] * 10_000),
        "a step believed an offset that no partition can have": (
            "offset",
            b"decide/3",
            b'{"step":"decide","topic":"pages","partition":3,"offset":9223372036854775808}',
        ),
        "a step believed a partition that no topic can have": (
            "offset",
            b"decide/-1",
            b'{"step":"decide","topic":"pages","partition":-1,"offset":1}',
        ),
        "deep nesting stopped every service": ("offset", b"decide/3", b'{"x":' + b"[" * 20_000),
        "hexadecimal digits may have a sign": ("log", b'{"kind":"page","v":2,"words":"-000000000000001"}'),
    },
    "properties": {
        "a backslash at the end swallowed the next line": (b"sasl.password=abc\\\\\nsecurity.protocol=SASL_SSL\n",),
        "the password of a proxy was in the repr": (b"proxy_url=http://user:Hunter2Hunter2@proxy:1\n",),
    },
    "state_files": {
        "no bytes are no state": (b"",),
        "deep nesting is a RecursionError of the decoder": (b"\x82\xa7" + b"\x91" * 3_000,),
        "the same inside a name": (b"\x81\xa1a" + b"\x91" * 3_000,),
    },
    "text": {
        "sorting many combining marks takes quadratic time": ("\u0315\u0300" * 4_000,),
        "a lone surrogate is no UTF-8": ("a\ud800b", "\udfff"),
    },
    "url": {
        "a claim grows over the limit when it is percent-encoded": ("http://a.test/", "http://a.test/?a=" + "图" * 999),
        "a companion is looked for once, not for each parameter": ("http://a.test/?" + "cfid&" * 700 + "b=1",),
        "a host of marks is sorted by IDNA": ("http://a" + "\u0315\u0300" * 2_000 + ".test/",),
    },
    "warc": {
        "a broken record behind a whole one was reported twice": (_WHOLE + _TOO_SHORT + _WHOLE,),
        "data after a packed record gave it a negative place": ((HERE / "negative_offset.warc.gz").read_bytes(),),
        "data after a packed record gave it a negative length": ((HERE / "negative_length.warc.gz").read_bytes(),),
    },
}
"""Parser → what the input showed → the arguments."""
