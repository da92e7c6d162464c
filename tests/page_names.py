"""Names of kept pages in memory, for tests of a replica."""


class NamesInMemory:
    """What `runtime.kafka.state.page_names` keeps in a file."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[str, str]] = {}

    def name(self, sequence: int) -> tuple[str, str]:
        """Return (id, url) of the kept page at `sequence`; KeyError if it was not added."""
        return self.names[sequence]

    def add(self, sequence: int, page_id: str, url: str) -> None:
        """Remember the kept page at `sequence`."""
        self.names[sequence] = (page_id, url)

    def erase(self, sequence: int) -> None:
        """Forget a page that was retracted."""
        self.names.pop(sequence, None)
