"""The command line: `twinsieve`, or `python -m dedup_service.faces.cli`."""

from dedup_service.faces.cli.main import main

__all__ = ["main"]
