"""Files that are not on this machine: object storage and Web addresses, through fsspec, with errors in our words.

fsspec is imported when the first address is used: who has none needs neither it nor what it imports.

A folder at an address of object storage, as `s3://bucket/prefix`, whose files are read as a whole.

What goes wrong is an error of `addresses`; a file that is not there is a FileNotFoundError.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dedup_service.core.errors import ConfigurationError, TwinsieveError

_PIECE_BYTES = 8 << 20

_SILENT_S = 60.0
"""For which a Web server may send nothing. A whole file may take hours; aiohttp would limit it to five minutes."""


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

    def get(self, name: str, path: Path, report: Callable[[int], None] = lambda _: None) -> None:
        """Download a file to `path`, which is there once it is complete. report: is told of bytes as they come."""
        partial = path.with_name(path.name + ".part")
        with translated_errors(self.address), self._files.open(f"{self._root}/{name}", "rb") as source:
            with partial.open("wb") as target:
                while piece := source.read(_PIECE_BYTES):
                    target.write(piece)
                    report(len(piece))
            partial.replace(path)


if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


class AddressUnreachableError(TwinsieveError):
    """An address could not be read. Check it, the credentials and the network, and try again."""

    retryable: ClassVar[bool] = True


def is_address(name: str) -> bool:
    """Return whether a name is an address, as `s3://bucket/prefix`, and no path.

    >>> is_address("s3://crawl/monday.jsonl"), is_address("crawl/monday.jsonl")
    (True, False)
    """
    return "://" in name


def on_this_machine(name: str) -> str:
    """Return the path that an address `file://…` stands for; any other name as it is.

    >>> on_this_machine("file:///crawl/monday.jsonl"), on_this_machine("s3://crawl/monday.jsonl")
    ('/crawl/monday.jsonl', 's3://crawl/monday.jsonl')
    """
    return file_system(name)[1] if name.startswith(("file://", "local://")) else name


def file_system(address: str, **options: Any) -> "tuple[AbstractFileSystem, str]":
    """Return fsspec's file system of an address, and its path there. options: of that file system.

    ConfigurationError if a library is missing, or fsspec knows no such address.
    """
    with translated_errors(address):
        from fsspec.core import url_to_fs

        if address.startswith(("http://", "https://")):
            from aiohttp import ClientTimeout

            options["client_kwargs"] = {"timeout": ClientTimeout(total=None, sock_connect=30.0, sock_read=_SILENT_S)}
        files, path = url_to_fs(address, **options)
        return files, str(path)


@contextmanager
def translated_errors(address: str) -> Iterator[None]:
    """Raise what a storage raises as ConfigurationError or AddressUnreachableError; FileNotFoundError as it is."""
    try:
        yield
    except (FileNotFoundError, TwinsieveError, GeneratorExit):
        raise
    except ImportError as error:
        raise ConfigurationError(
            f"{address} cannot be read without a library: pip install 'twinsieve[s3]' for s3:// and https://; for "
            f"other storage what fsspec asks for ({error})"
        ) from error
    except ValueError as error:
        raise ConfigurationError(f"{address} is no address that fsspec knows: {error}") from error
    except Exception as error:  # each storage has errors of its own
        raise AddressUnreachableError(
            f"{address} cannot be read: {type(error).__name__}: {error}; check the address, the credentials and the "
            "network"
        ) from error
