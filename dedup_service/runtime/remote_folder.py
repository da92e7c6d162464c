"""A folder at an address of object storage, as `s3://bucket/prefix`, whose files are read as a whole.

What goes wrong is an error of `addresses`; a file that is not there is a FileNotFoundError.
"""

from pathlib import Path

from dedup_service.runtime.addresses import file_system, translated_errors


class RemoteFolder:
    """The folder at `address`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._files, root = file_system(address, use_listings_cache=False)
        self._root = root.rstrip("/")

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with translated_errors(self.address):
            return bytes(self._files.cat_file(f"{self._root}/{name}"))

    def get(self, name: str, path: Path) -> None:
        """Download a file to `path`."""
        with translated_errors(self.address):
            self._files.get_file(f"{self._root}/{name}", str(path))
