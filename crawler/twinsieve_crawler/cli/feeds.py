"""Convert `--output FILE` to Scrapy's `FEEDS`; the file extension gives the format, - is standard output."""

from pathlib import Path
from typing import Any

from dedup_service.core.errors import ConfigurationError

FORMATS = {
    ".jsonl": "jsonlines",
    ".jl": "jsonlines",
    ".ndjson": "jsonlines",
    ".json": "json",
    ".csv": "csv",
    ".xml": "xml",
}


def feeds(output: str, *, resume: bool) -> dict[str, dict[str, Any]]:
    """Return the setting for one feed. Raises ConfigurationError if the extension names no format.

    resume: append to the file, for a job that continues, instead of overwriting it.
    """
    if output == "-":
        return {"stdout:": {"format": "jsonlines"}}
    path = Path(output)
    compressed = path.suffix == ".gz"
    extension = Path(path.stem).suffix if compressed else path.suffix
    if extension not in FORMATS:
        raise ConfigurationError(
            f"--output needs the extension {', '.join(FORMATS)}, optionally with .gz; got {output!r}"
        )
    options: dict[str, Any] = {"format": FORMATS[extension], "overwrite": not resume}
    if compressed:
        options["postprocessing"] = ["scrapy.extensions.postprocessing.GzipPlugin"]
    return {str(path.absolute()).replace("%", "%%"): options}
