"""`twinsieve` whose native core panics at one page, as a fault of the core would.

    python -m tests.panicking COMMAND …

The variable PANICS_AT of the environment has the URL of the page.
"""

import os
from collections.abc import Generator

from dedup_service.core.decision.decider import Batch, Decider, Decision
from dedup_service.core.record_columns import RecordColumns
from dedup_service.interfaces.cli.main import main

VARIABLE = "PANICS_AT"


def panic_at(url: str) -> None:
    """Make each decider of this process panic at the page of a URL."""
    decide_runs = Decider.decide_runs

    def panicking(decider: Decider, pages: Batch | RecordColumns) -> Generator[Decision | int, None, None]:
        if isinstance(pages, RecordColumns):
            places = zip(pages.sequences, pages.urls, strict=True)
        else:
            places = ((sequence, prepared.page.url) for sequence, prepared in pages)
        for sequence, its_url in places:
            if its_url == url:
                decider._native.panic_at(sequence)
        return decide_runs(decider, pages)

    Decider.decide_runs = panicking  # type: ignore[method-assign]


if __name__ == "__main__":
    panic_at(os.environ[VARIABLE])
    main()
