"""Groups against the truth of the evaluation data, and what each policy of canonical pages chooses.

    python -m benchmarks.groups DIR

Two measurements, on data that is copied nowhere (see `benchmarks.quality.corpora` for what DIR has).

- Purity over `stream/`: share of pages whose group has their truth as its majority; inverse purity: share of pages
  that are in the group which has most of their truth. S4 and S5, of which a half is another text or gone, are truths
  that no rule is asked to follow; the second row leaves them out.
- Policies over `html/`: of each group with two URLs or more, the page that a policy chooses is compared with the
  article alone, which the data has. `alone`: share of its 5-grams that are of its article. `whole`: share of the
  5-grams of the group's longest article that it has. `F1` of the two, and `best`: share of groups in which no other
  page has a higher F1, `worst`: in which no other has a lower one, of the groups in which pages differ at all.
"""

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from benchmarks.quality.corpora import Corpora, HtmlTask, read_lines
from dedup_service._native import fold
from dedup_service.core.extraction import extract, to_page
from dedup_service.core.groups.canonical import canonical_policy
from dedup_service.core.groups.grouping import PageGroup, grouped
from dedup_service.core.groups.member import GroupMember
from dedup_service.core.page import Page
from dedup_service.runtime.embedded.filter import NearDuplicateFilter
from dedup_service.runtime.groups.journal_members import spool_state
from dedup_service.runtime.groups.spool import group_spool

GRAM = 5
POLICIES = ("earliest", "longest", "complete")
BATCH = 512


@contextmanager
def members_of(pages: Sequence[Page]) -> Iterator[list[tuple[int, GroupMember]]]:
    """Filter `pages` into a new state and yield its members, in order of their groups."""
    with tempfile.TemporaryDirectory() as folder:
        with NearDuplicateFilter.open(folder) as dedup:
            for start in range(0, len(pages), BATCH):
                dedup.check_many(pages[start : start + BATCH])
        with group_spool(with_sentences=True) as spool:
            spool_state(folder, spool, lambda _done, _total: None)
            yield list(spool.members())


def purities(groups: Mapping[str, int], truth: Mapping[str, str]) -> tuple[float, float]:
    """Return purity and inverse purity. groups, truth: of each page, by id."""
    found = Counter((groups[page], truth[page]) for page in truth)
    of_group, of_truth = defaultdict[int, int](int), defaultdict[str, int](int)
    for (group, name), count in found.items():
        of_group[group] = max(of_group[group], count)
        of_truth[name] = max(of_truth[name], count)
    return sum(of_group.values()) / len(truth), sum(of_truth.values()) / len(truth)


def over_updates(members: Iterable[tuple[int, GroupMember]]) -> dict[str, int]:
    """Return the group of each page by its id, where one that begins with an update is the one that it follows."""
    first: dict[int, int] = {}
    joined: dict[str, int] = {}
    for group, member in members:
        if group not in first:
            follows = member.original if member.sequence == group else None
            first[group] = group if follows is None else first.get(follows, follows)
        joined[member.id] = first[group]
    return joined


def grams(text: str) -> frozenset[str]:
    """Return the different runs of GRAM letters and digits of a text."""
    letters = "".join(filter(str.isalnum, fold(text)))
    return frozenset(letters[at : at + GRAM] for at in range(len(letters) - GRAM + 1))


@dataclass(frozen=True, slots=True)
class ComparedText:
    """How a page compares with the article alone; f1 is of the other two."""

    alone: float
    whole: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.alone * self.whole / (self.alone + self.whole) if self.alone + self.whole else 0.0


def choices(group: PageGroup, texts: Mapping[str, str], articles: Mapping[str, str]) -> dict[str, ComparedText]:
    """Return each page of a group, by its id, compared with the article. Repeated visits count once."""
    own = {member.id: grams(articles[member.id]) for member in group.members}
    longest = max(own.values(), key=len)
    found = {}
    for name, article in own.items():
        text = grams(texts[name])
        found[name] = ComparedText(len(text & article) / (len(text) or 1), len(text & longest) / (len(longest) or 1))
    return found


def policy_rows(
    members: Sequence[tuple[int, GroupMember]], texts: Mapping[str, str], articles: Mapping[str, str]
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each policy, and two for the best and the worst choice there is."""
    compared: dict[int, dict[str, ComparedText]] = {}
    for group in grouped(members, canonical_policy("earliest"), min_size=2):
        found = choices(group, texts, articles)
        if len({choice.f1 for choice in found.values()}) > 1:
            compared[group.sequence] = found
    for policy in POLICIES:
        groups = grouped(members, canonical_policy(policy), min_size=2)
        chosen = {
            group.sequence: group.canonical.id for group in groups if group.sequence in compared and group.canonical
        }
        yield _row(policy, compared, chosen)
    for name, pick in (("best there is", max), ("worst there is", min)):
        chosen = {group: pick(found, key=lambda page: found[page].f1) for group, found in compared.items()}
        yield _row(name, compared, chosen)


def _row(name: str, compared: Mapping[int, Mapping[str, ComparedText]], chosen: Mapping[int, str]) -> tuple[str, ...]:
    picked = {group: compared[group][page] for group, page in chosen.items()}
    best = fmean(picked[group].f1 == max(choice.f1 for choice in compared[group].values()) for group in picked)
    worst = fmean(picked[group].f1 == min(choice.f1 for choice in compared[group].values()) for group in picked)
    figures = (
        fmean(choice.alone for choice in picked.values()),
        fmean(choice.whole for choice in picked.values()),
        fmean(choice.f1 for choice in picked.values()),
        best,
        worst,
    )
    return name, str(len(picked)), *(f"{figure:.3f}" for figure in figures)


def extracted(html: HtmlTask) -> Page:
    """Return a page as the filter extracts it."""
    return to_page(extract(html.path.read_bytes()), html.url, id=html.id)


def print_table(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table."""
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the evaluation data")
    corpora = Corpora(parser.parse_args().folder)
    truth = {row.id: row for row in corpora.truth}
    with members_of(corpora.stream) as members:
        groups = {member.id: group for group, member in members}
        joined = over_updates(members)
    all_of = {name: row.group for name, row in truth.items()}
    scored = {name: row.group for name, row in truth.items() if row.positive is not None}
    print_table(
        f"stream: {len(groups):,} pages",
        ["pages", "groups", "purity", "inverse purity"],
        [
            (name, text, *(f"{value:.4f}" for value in purities(which, of)))
            for name, of in (("all", all_of), ("without S4, S5", scored))
            for text, which in (("as they are", groups), ("joined over updates", joined))
        ],
    )
    with ProcessPoolExecutor() as pool:
        pages = list(pool.map(extracted, corpora.html, chunksize=16))
    texts = {page.id: page.text for page in pages}
    articles = {row["id"]: row["text"] for row in read_lines(corpora.folder / "html" / "reference_text.jsonl")}
    with members_of(pages) as members:
        print_table(
            f"html: {len(pages):,} pages",
            ["policy", "groups", "alone", "whole", "F1", "best", "worst"],
            policy_rows([row for row in members if row[1].id in articles], texts, articles),
        )


if __name__ == "__main__":
    main()
