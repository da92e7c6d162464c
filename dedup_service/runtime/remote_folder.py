"""A folder at an address of object storage, as `s3://bucket/prefix`, through fsspec.

What goes wrong is a ConfigurationError for an address or a library, and SourceUnreachableError for the rest; a file
that is not there is a FileNotFoundError.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dedup_service.core.errors import ConfigurationError, StateError

__all__ = ["RemoteFolder", "SourceUnreachableError", "is_address"]


class SourceUnreachableError(StateError):
    """An address could not be read. Check it, the credentials and the network, and try again."""


def is_address(source: str) -> bool:
    """Return whether a source is an address, as `s3://bucket/prefix`, and no folder."""
    return "://" in source


class RemoteFolder:
    """The folder at `address`."""

    def __init__(self, address: str) -> None:
        self.address = address
        with self._translated():
            from fsspec.core import url_to_fs

            self._files, self._root = url_to_fs(address, use_listings_cache=False)
        self._root = self._root.rstrip("/")

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self._translated():
            return bytes(self._files.cat_file(f"{self._root}/{name}"))

    def get(self, name: str, path: Path) -> None:
        """Download a file to `path`."""
        with self._translated():
            self._files.get_file(f"{self._root}/{name}", str(path))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except ImportError as error:
            raise ConfigurationError(
                f"{self.address} cannot be read without a library: pip install 'twinsieve[s3]' for s3://; for other "
                f"storage what fsspec asks for ({error})"
            ) from error
        except ValueError as error:
            raise ConfigurationError(f"{self.address} is no address that fsspec knows: {error}") from error
        except Exception as error:  # each storage has errors of its own
            raise SourceUnreachableError(
                f"{self.address} cannot be read: {type(error).__name__}: {error}; check the address, the credentials "
                "and the network"
            ) from error
