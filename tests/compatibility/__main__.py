"""Write a state and a log with this version: `python -m tests.compatibility`, once for each release.

The file is VERSION.tar.xz beside this one: `state/`, the folder of `PAGES` in their order, and `log`, the messages of
a log with the same pages, one a line in base64.
"""

import base64
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path

from dedup_service import PROFILES, NearDuplicateFilter, Page, prepare
from dedup_service.core.log_records import PageRecord, Policy, PolicyRecord, Source
from dedup_service.core.url import canonicalise
from dedup_service.core.verdict import Action
from tests.sharded_run import messages_of

HERE = Path(__file__).parent
_SENTENCES = (
    "The ferry to the island left the harbour forty minutes late this morning.",
    "A lorry had broken down on the ramp, and its driver waited for a mechanic.",
    "Passengers drank tea in the waiting room, and the children counted gulls.",
    "The harbour office says that a second ramp will be ready before the summer.",
    "Until then the earliest boat takes no lorries, and the last one takes no bicycles.",
)
_RICE = (
    "今年秋天雨水充足，全县稻谷亩产比去年提高一成。农民趁着晴天抢收，晒场上铺满了金黄的谷子。"
    "镇里的合作社新买了两台烘干机，雨天也不怕谷子发芽。收购站的价格每斤涨了五分，卡车排到了村口。"
)
PAGES = tuple(
    Page(url=url, canonical_url=canonicalise(url), id=url, title=title, text=text)
    for url, title, text in (
        ("https://daily.example/ferry", "Ferry is late", " ".join(_SENTENCES)),
        ("https://daily.example/rice", "稻谷丰收", _RICE),
        ("https://courier.example/ferry", "No ferry before nine", " ".join((*_SENTENCES, "So our reporter says."))),
    )
)
"""The third is a copy of the first."""


def main() -> None:
    """Write the file."""
    file = HERE / f"{metadata.version('twinsieve')}.tar.xz"
    with tempfile.TemporaryDirectory() as name, tarfile.open(file, "w:xz") as archive:
        folder = Path(name)
        with NearDuplicateFilter.open(folder / "state") as dedup:
            dedup.check_many(PAGES)
            space_id = dedup.space_id
        policy = Policy(PROFILES["balanced"], Action.FLAG, space_id)
        records = [PageRecord(Source("pages", 0, at), prepare(page), space_id) for at, page in enumerate(PAGES)]
        messages = messages_of([[PolicyRecord(policy, initial=True, log="a-log")], records])
        (folder / "log").write_bytes(b"".join(base64.b64encode(message.value) + b"\n" for message in messages))
        archive.add(folder / "state", "state")
        archive.add(folder / "log", "log")


if __name__ == "__main__":
    main()
