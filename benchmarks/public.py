"""Claim: on two public data sets of near-duplicates, the filter stands beside the published methods.

    python -m benchmarks.public [--core FILE] [--news-copy FOLDER]

Neither data set is part of this repository; whoever has them runs this. Both are read as they were published:

CORE     CORE Deduplication Dataset 2020, core.ac.uk/documentation/dataset (ODC-By; 100,000 scholarly documents; copied
         as pinecone/core-2020-05-10-deduplication, train.jsonl). One JSON object a line: core_id, doi, original_title,
         original_abstract, processed_title, processed_abstract, cat (exact_dup, near_exact_dup, non_dup) and
         labelled_duplicates, the core_ids of all its duplicates, or null. FILE may be compressed (.gz). Titles and
         abstracts are read as `original_…`.
NEWS     NEWS-COPY, github.com/dell-research-harvard/NEWS-COPY (historical newspapers, read by OCR). One set (test or
         evaluation) is two JSON files, which are told apart by their form: an object with an object for each article,
         under its id, with `article` (the text) and `byline`; and a list of pairs of ids, which are duplicates. FOLDER
         has those two.

Every profile decides the documents in the order of the file, each under an address of its own; a duplicate and the kept
page that it names are in one group.

CORE is scored by document, as the published figures are: it is right if it has labelled duplicates and all of them are
in its group; wrong if its group is larger than itself and it is not right; missed if it is alone and has labelled
duplicates. Pairs are shown beside that: of one group, and labelled. NEWS is scored by the adjusted Rand index of groups
and clusters; a document in no pair is alone.

Sources: Gyawali, Anastasiou and Knoth, "Deduplication of scholarly documents using locality sensitive hashing and word
embeddings", LREC 2020. Silcock, D'Amico-Wong, Yang and Dell, "Noise-robust de-duplication at scale", ICLR 2023. Zhang
et al., "RETSim: resilient and efficient text similarity", ICLR 2024. The figures of MinHash and SimHash are those of
text-dedup (github.com/ChenghaoMou/text-dedup, README and tests/benchmark_core.py). Hubert and Arabie, "Comparing
partitions", Journal of Classification 2, 1985 (the index).
"""

import argparse
import gzip
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import comb
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Column, Table

from benchmarks.quality.profiles import FLAGS, verdicts
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.resources import build_fingerprinter

CORE_PUBLISHED = {"MinHash": (0.959, 0.942), "SimHash": (0.904, 0.732)}
"""Precision and recall of documents with duplicates."""

NEWS_COPY_PUBLISHED = {"SimHash": ".646", "MinHash": ".729 to .78", "neural": ".83 to .937"}
"""Adjusted Rand index."""

Groups = dict[str, int]
"""Id of a document → number of its group."""


class CorpusError(ConfigurationError):
    """A file is not of the published form."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document. cluster: name of the cluster that the truth has it in; None for one alone."""

    id: str
    title: str
    text: str
    cluster: Hashable = None


@dataclass(frozen=True, slots=True)
class Scores:
    """Precision, recall and F1, from counts of right, wrong and missed."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Share of what was called a duplicate that is one; 0 if there is nothing."""
        return self.right / (self.right + self.wrong) if self.right else 0.0

    @property
    def recall(self) -> float:
        """Share of the duplicates that were found; 0 if there are none."""
        return self.right / (self.right + self.missed) if self.right else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of the two."""
        return 2 * self.right / (2 * self.right + self.wrong + self.missed) if self.right else 0.0


def read_core(path: Path) -> tuple[list[Document], dict[str, frozenset[str]]]:
    """Return the documents of CORE, and the ids of the duplicates of each."""
    documents, labels = [], {}
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = msgspec.json.decode(line)
                name = str(record["core_id"])
                documents.append(Document(name, record["original_title"] or "", record["original_abstract"] or ""))
                labels[name] = frozenset(map(str, record.get("labelled_duplicates") or ())) - {name}
            except (msgspec.MsgspecError, KeyError, TypeError) as error:
                raise CorpusError(f"{path}, line {number} is not of the published form: {error}") from None
    return documents, labels


def read_news_copy(folder: Path) -> list[Document]:
    """Return the documents of one set of NEWS-COPY, in the order of its file."""
    contents = [msgspec.json.decode(path.read_bytes()) for path in sorted(folder.glob("*.json"))]
    articles = [content for content in contents if isinstance(content, dict)]
    edges = [content for content in contents if isinstance(content, list)]
    if len(articles) != 1 or len(edges) != 1:
        raise CorpusError(
            f"{folder} should have one JSON file with articles by id and one with pairs of ids, and has "
            f"{len(articles)} and {len(edges)}: give the folder of one set, for instance the test set"
        )
    [by_id], [pairs] = articles, edges
    clusters = _components(pairs)
    return [
        Document(name, "", f"{row.get('byline') or ''} {row['article']}".strip(), clusters.get(name))
        for name, row in by_id.items()
    ]


def _components(pairs: list[list[str]]) -> dict[str, int]:
    """Return the cluster of each document in a pair: duplicates of duplicates are in one."""
    parents: dict[str, str] = {}
    for pair in pairs:
        one, other = (_root(parents, name) for name in pair)
        parents[other] = one
    roots = {name: _root(parents, name) for name in parents}
    numbers = {root: number for number, root in enumerate(dict.fromkeys(roots.values()))}
    return {name: numbers[root] for name, root in roots.items()}


def _root(parents: dict[str, str], name: str) -> str:
    parents.setdefault(name, name)
    while parents[name] != name:
        parents[name] = name = parents[parents[name]]
    return name


def groups_of(prepared: list[PreparedPage], rule: MatchRule) -> Groups:
    """Return the group of each page under a rule: a kept page with the pages that repeat it."""
    numbers: Groups = {}
    for number, verdict in enumerate(verdicts(prepared, rule, "deciding")):
        original = verdict.duplicate_of if verdict.kind in FLAGS else None
        numbers[verdict.id] = number if original is None else numbers[original]
    return numbers


def document_scores(labels: Mapping[str, frozenset[str]], groups: Groups) -> Scores:
    """Score documents as the published figures of CORE are."""
    members = _members(groups)
    counts: Counter[str] = Counter()
    for name, duplicates in labels.items():
        found = members[groups[name]]
        if len(found) == 1:
            counts["missed"] += bool(duplicates)
        else:
            counts["right" if duplicates and duplicates <= found else "wrong"] += 1
    return Scores(counts["right"], counts["wrong"], counts["missed"])


def pair_scores(labels: Mapping[str, frozenset[str]], groups: Groups) -> Scores:
    """Score pairs of documents: of one group, and labelled on either side."""
    labelled = {frozenset((one, other)) for one, others in labels.items() for other in others if other in groups}
    right = sum(len({groups[name] for name in pair}) == 1 for pair in labelled)
    found = sum(comb(len(names), 2) for names in _members(groups).values())
    return Scores(right, found - right, len(labelled) - right)


def _members(groups: Groups) -> dict[int, set[str]]:
    members: dict[int, set[str]] = defaultdict(set)
    for name, number in groups.items():
        members[number].add(name)
    return members


def adjusted_rand_index(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Return how well two partitions of the same documents agree: 1 if they are equal, about 0 if by chance."""
    both = sum(comb(count, 2) for count in Counter(zip(one, other, strict=True)).values())
    of_one, of_other = (sum(comb(count, 2) for count in Counter(part).values()) for part in (one, other))
    pairs = comb(len(one), 2)
    expected = of_one * of_other / pairs if pairs else 0.0
    highest = (of_one + of_other) / 2
    return 1.0 if highest == expected else (both - expected) / (highest - expected)


def _prepared(documents: Iterable[Document]) -> list[PreparedPage]:
    pages = []
    for number, document in enumerate(documents):
        url = f"https://document.example/{number}"
        pages.append(Page(id=document.id, url=url, canonical_url=url, title=document.title, text=document.text))
    return build_fingerprinter(None).prepare_all(pages)


def core_table(path: Path) -> Table:
    """Return the figures of CORE: ours by profile, and the published ones."""
    documents, labels = read_core(path)
    prepared = _prepared(documents)
    name_column = Column(no_wrap=True)
    table = Table(name_column, "precision", "recall", "F1", "of pairs", "recall", "F1", title=f"CORE, {len(labels):,}")
    for name, rule in PROFILES.items():
        groups = groups_of(prepared, rule)
        scores = document_scores(labels, groups), pair_scores(labels, groups)
        table.add_row(name, *(f"{x:.3f}" for s in scores for x in (s.precision, s.recall, s.f1)))
    for name, (precision, recall) in CORE_PUBLISHED.items():
        f1 = 2 * precision * recall / (precision + recall)
        table.add_row(f"{name}, published", *(f"{x:.3f}" for x in (precision, recall, f1)))
    return table


def news_copy_table(folder: Path) -> Table:
    """Return the figures of NEWS-COPY: ours by profile, and the published ones."""
    documents = read_news_copy(folder)
    alone = (("alone", number) for number in range(len(documents)))
    truth = [next(alone) if one.cluster is None else one.cluster for one in documents]
    prepared = _prepared(documents)
    table = Table("", "ARI", title=f"NEWS-COPY, {len(documents):,}")
    for name, rule in PROFILES.items():
        table.add_row(name, f"{adjusted_rand_index(truth, list(groups_of(prepared, rule).values())):.3f}")
    for name, published in NEWS_COPY_PUBLISHED.items():
        table.add_row(f"{name}, published", published)
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=Path, metavar="FILE", help="CORE Deduplication Dataset 2020")
    parser.add_argument("--news-copy", type=Path, metavar="FOLDER", help="one set of NEWS-COPY")
    given = parser.parse_args(arguments)
    if given.core is None and given.news_copy is None:
        parser.error("give --core FILE, --news-copy FOLDER or both")
    console = Console()
    try:
        tables = chain(
            () if given.core is None else (core_table(given.core),),
            () if given.news_copy is None else (news_copy_table(given.news_copy),),
        )
        for table in tables:
            console.print(table)
    except (CorpusError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
