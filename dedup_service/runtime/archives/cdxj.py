"""The index beside an archive: CDXJ, sorted by address and date, made by cdxj-indexer from the finished file.

Every response, resource and revisit of the archive has one line; metadata records of duplicates that were left out have
none, so that replay shows no page there. A record that cannot be indexed (without a date, or with one that cannot be
read) is counted and left out. The index appears under its name when it is complete.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.archives.visit import stored_digest


def check_indexer() -> None:
    """Raise ConfigurationError if cdxj-indexer is not installed."""
    try:
        import cdxj_indexer.main  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the index of an archive needs {error.name}, which is not installed: pip install 'twinsieve[archives]'"
        ) from error


def write_index(archive: Path, index: Path) -> int:
    """Write the index of `archive` to `index`, and return how many records could not be indexed. OSError as raised."""
    from cdxj_indexer.main import CDXJIndexer

    class Indexer(CDXJIndexer):  # type: ignore[misc] # it has no types
        """Leaves out what it cannot index, instead of ending there."""

        left_out = 0

        def process_index_entry(self, it: Any, record: Any, filename: str, output: Any) -> None:
            try:
                super().process_index_entry(it, record, filename, output)
            except (AttributeError, TypeError, ValueError):  # a date that is missing or cannot be read
                self.left_out += 1

        def get_field(self, record: Any, name: str, it: Any, filename: str) -> Any:
            """Return a field; a payload digest that is not stated without the temporary file that warcio makes."""
            if name != "warc-payload-digest":
                return super().get_field(record, name, it, filename)
            return record.rec_headers.get_header(name) or stored_digest(record.raw_stream)

        def get_url_key(self, url: str) -> str:
            """Return the sort key of an address: without spaces and line ends, at which a line is split."""
            return "".join(super().get_url_key(url).split())

    unfinished = index.with_name(f"{index.name}.unfinished")
    try:
        indexer = Indexer(str(unfinished), str(archive), sort=True)
        indexer.process_all()
        unfinished.replace(index)
    finally:
        with suppress(FileNotFoundError):
            unfinished.unlink()
    return indexer.left_out
