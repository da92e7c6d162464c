"""From `--output FILE` to Scrapy's `FEEDS`: the format by the file's ending, `-` for standard output."""

from pathlib import Path
from typing import Any

from dedup_service.core.errors import ConfigurationError

__all__ = ["feeds"]

FORMATS = {
    ".jsonl": "jsonlines",
    ".jl": "jsonlines",
    ".ndjson": "jsonlines",
    ".json": "json",
    ".csv": "csv",
    ".xml": "xml",
}


def feeds(output: str, *, resume: bool) -> dict[str, dict[str, Any]]:
    """Return the setting for one feed; ConfigurationError for an ending that names no format.

    resume: go on with the file where it is (a job that continues) instead of starting it anew.
    """
    if output == "-":
        return {"stdout:": {"format": "jsonlines"}}
    path = Path(output)
    packed = path.suffix == ".gz"
    ending = Path(path.stem).suffix if packed else path.suffix
    if ending not in FORMATS:
        raise ConfigurationError(f"--output ends in one of {', '.join(FORMATS)} (and .gz if you like), got {output!r}")
    options: dict[str, Any] = {"format": FORMATS[ending], "overwrite": not resume}
    if packed:
        options["postprocessing"] = ["scrapy.extensions.postprocessing.GzipPlugin"]
    return {str(path.absolute()).replace("%", "%%"): options}
