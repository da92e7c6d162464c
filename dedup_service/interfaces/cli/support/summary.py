"""What a run did, in numbers: a table for people or one line of JSON for machines, both on stderr."""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dedup_service.core.verdict import Guard, Verdict, VerdictKind


class Summary:
    """Counts of one run: verdicts by kind, guards, refused claims, bad records.

    given_before: verdicts that an earlier run gave, as this one repeats them. by_another_rule: those of them that were
    given by another rule than that in force. known, rule_since: the sequences by which `count` tells them.
    archived: records of the archive by kind; empty without one.
    """

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.guards: Counter[str] = Counter()
        self.claim_refused = self.faults = 0
        self.bad_records = 0
        self.given_before = self.by_another_rule = 0
        self.known = self.rule_since = -1
        self.archived: dict[str, int] = {}

    @property
    def pages(self) -> int:
        """Number of pages with a verdict."""
        return self.kinds.total()

    def count(self, verdicts: Iterable[Verdict]) -> None:
        """Add a batch of verdicts."""
        for verdict in verdicts:
            self.kinds[verdict.kind.value] += 1
            if verdict.guard is not None:
                self.guards[verdict.guard.value] += 1
            self.claim_refused += verdict.claim_refused
            self.faults += verdict.is_fault
            self.given_before += verdict.sequence <= self.known
            self.by_another_rule += verdict.sequence < self.rule_since

    def restore(self, counts: Mapping[str, Any]) -> None:
        """Begin with the counts that `as_dict` gave."""
        self.kinds.update(counts["verdicts"])
        self.guards.update({name: count for name, count in counts["guards"].items() if count})
        self.claim_refused += counts["claim_refused"]
        self.faults += counts["faults"]
        self.bad_records += counts["bad_records"]
        self.given_before += counts["given_before"]
        self.by_another_rule += counts["by_another_rule"]

    def as_dict(self, **details: Any) -> dict[str, Any]:
        """Return the counts and `details` as JSON values."""
        verdicts = {kind.value: self.kinds[kind.value] for kind in VerdictKind}
        guards = {guard.value: self.guards[guard.value] for guard in Guard}
        return {
            "pages": self.pages,
            "verdicts": verdicts,
            "guards": guards,
            "claim_refused": self.claim_refused,
            "faults": self.faults,
            "bad_records": self.bad_records,
            "given_before": self.given_before,
            "by_another_rule": self.by_another_rule,
            **({"archive": self.archived} if self.archived else {}),
            **details,
        }

    def print_json(self, **details: Any) -> None:
        """Write one line of JSON to stderr."""
        sys.stderr.write(msgspec.json.encode(self.as_dict(**details)).decode() + "\n")

    def print_table(self, **details: Any) -> None:
        """Write the table to stderr, with `details` below the counts."""
        from rich.console import Console
        from rich.table import Table

        table = Table(title=f"{self.pages:,} pages", title_justify="left", show_header=False)
        table.add_column("what")
        table.add_column("how many", justify="right")
        table.add_column("share", justify="right")
        for verdict in VerdictKind:
            share = f"{self.kinds[verdict.value] / self.pages:.1%}" if self.pages else ""
            table.add_row(verdict.value, f"{self.kinds[verdict.value]:,}", share)
        for guard, count in sorted(self.guards.items()):
            table.add_row(f"  guard {guard}", f"{count:,}", f"{count / self.pages:.1%}")
        if self.claim_refused:
            table.add_row("claims refused", f"{self.claim_refused:,}", f"{self.claim_refused / self.pages:.1%}")
        if self.faults:
            table.add_row("faults of twinsieve", f"{self.faults:,}", f"{self.faults / self.pages:.1%}")
        table.add_row("bad records", f"{self.bad_records:,}", "")
        if self.given_before:
            table.add_row("given before", f"{self.given_before:,}", f"{self.given_before / self.pages:.1%}")
        for kind, count in self.archived.items():
            table.add_row(f"archived: {kind}", f"{count:,}", f"{count / self.pages:.1%}" if self.pages else "")
        console = Console(stderr=True)
        console.print(table)
        for name, value in details.items():
            console.print(f"{name.replace('_', ' ')}: {value}", markup=False, highlight=False)
