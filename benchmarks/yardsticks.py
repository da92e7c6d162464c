"""Claim: on public collections with near-duplicates, the filter stands beside the published methods.

    python -m benchmarks.yardsticks FOLDER [--count N] [--docs FOLDER]

No collection is part of this repository. FOLDER has those that you have, as they were published; the others are left
out.

reuters21578/reut2-*.sgm   Reuters-21578, distribution 1.0 (kdd.ics.uci.edu). Read are the 19,043 stories with a BODY,
                           in the order of NEWID, without the closing line "Reuter".
20_newsgroups/GROUP/NUMBER 20 Newsgroups (qwone.com/~jason/20Newsgroups), the original or the version of 18,828. The
                           text is the body of the mail, quoted lines included; the title is the subject.
core.jsonl, core.jsonl.gz  CORE Deduplication Dataset 2020, core.ac.uk/documentation/dataset (ODC-By; 100,000 scholarly
                           documents; copied as pinecone/core-2020-05-10-deduplication, train.jsonl). One JSON object a
                           line: core_id, original_title, original_abstract and labelled_duplicates, the core_ids of
                           all its duplicates, or null.
news-copy/*.json           NEWS-COPY, github.com/dell-research-harvard/NEWS-COPY (newspapers, read by OCR). One set
                           (test or evaluation) is two JSON files: an object with an object for each article, under its
                           id, with `article` (the text) and `byline`; and a list of pairs of ids, which are duplicates.

Pairs. Of Reuters and 20 Newsgroups, benchmarks/labels has pairs that were labelled by reading: dup, not, or grey, which
is not scored. They were drawn by strata of Jaccard similarity, or among the flags of a profile (column `drawn`); so
counts of pairs are no rates of the collection. A system calls a pair a duplicate if it finds the first one when it gets
the second one. Peers are the installed ones of rensa, datasketch and PyPI simhash, as `benchmarks.verdict` runs them.
Speed and memory are measured as there, over the first N documents of both. Table and picture are written into
quality.md of --docs.

CORE and NEWS-COPY are printed only. Every profile decides the documents in the order of the file; a duplicate and the
kept page that it names are in one group. CORE is scored by document, as the published figures are: it is right if it
has labelled duplicates and all of them are in its group; wrong if its group is larger than itself and it is not right;
missed if it is alone and has labelled duplicates. Pairs are shown beside that: of one group, and labelled. NEWS-COPY is
scored by the adjusted Rand index of groups and clusters; a document in no pair is alone.

Sources: Lewis, "Reuters-21578 text categorization test collection, distribution 1.0", 1997. Lang, "NewsWeeder", ICML
1995 (20 Newsgroups). Gyawali, Anastasiou and Knoth, "Deduplication of scholarly documents using locality sensitive
hashing and word embeddings", LREC 2020. Silcock, D'Amico-Wong, Yang and Dell, "Noise-robust de-duplication at scale",
ICLR 2023. Zhang et al., "RETSim: resilient and efficient text similarity", ICLR 2024. The published figures of MinHash
and SimHash are those of text-dedup (github.com/ChenghaoMou/text-dedup, README and tests/benchmark_core.py). Hubert and
Arabie, "Comparing partitions", Journal of Classification 2, 1985 (the index).
"""

import argparse
import csv
import gzip
import html
import importlib.util
import json
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import comb
from pathlib import Path

import msgspec
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from benchmarks.quality.numbers import figure, table
from benchmarks.quality.page import replaced
from benchmarks.quality.pictures import Picture
from benchmarks.quality.profiles import FLAGS, verdicts
from benchmarks.verdict import CHUNK, ENGLISH_PEERS, ROOT, WARM_CHUNKS, Build, Peer, build_of
from dedup_service.core.errors import ConfigurationError
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.core.verdict import VerdictKind
from dedup_service.interfaces.cli.commands.pairs import Comparer
from dedup_service.runtime.resources import build_fingerprinter

LABELS = Path(__file__).with_name("labels")

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


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A collection with labelled pairs.

    negatives: what its pairs with the label `not` are. pairs: (id, id) and whether they are duplicates; no grey ones.
    """

    name: str
    negatives: str
    documents: dict[str, Document]
    pairs: dict[tuple[str, str], bool]

    def score(self, called: Callable[[str, str], bool]) -> Scores:
        """Score a system. called: whether it calls two documents duplicates."""
        counts = Counter((duplicate, called(*pair)) for pair, duplicate in self.pairs.items())
        return Scores(counts[True, True], counts[False, True], counts[True, False])


def read_reuters(folder: Path) -> Iterator[Document]:
    """Yield the stories of Reuters-21578 that have a body."""
    for path in sorted(folder.glob("reut2-*.sgm")):
        for found in re.finditer(r'<REUTERS [^>]*NEWID="(\d+)".*?</REUTERS>', path.read_text("latin-1"), re.DOTALL):
            parts = [re.search(f"<{tag}>(.*?)</{tag}>", found[0], re.DOTALL) for tag in ("TITLE", "BODY")]
            title, body = ("" if part is None else html.unescape(part[1]).strip() for part in parts)
            if body:
                yield Document(found[1], title, re.sub(r"\s*\breuter$", "", body, flags=re.IGNORECASE))


def read_newsgroups(folder: Path) -> Iterator[Document]:
    """Yield the mails of 20 Newsgroups."""
    for path in sorted(folder.glob("*/*")):
        head, _, body = path.read_text("latin-1").partition("\n\n")
        subject = re.search(r"^subject:(.*)", head, re.IGNORECASE | re.MULTILINE)
        yield Document(f"{path.parent.name}/{path.name}", subject[1].strip() if subject else "", body.strip())


LABELLED: dict[str, tuple[str, str, str, Callable[[Path], Iterator[Document]]]] = {
    "reuters21578": ("Reuters-21578", "forms and series", "reuters-21578.tsv", read_reuters),
    "20_newsgroups": ("20 Newsgroups", "replies", "20-newsgroups.tsv", read_newsgroups),
}
"""By folder: name, what pairs with the label `not` are, file of labels, reader."""


def read_labelled(folder: Path) -> list[LabelledSet]:
    """Return the collections in FOLDER that have labelled pairs."""
    found = []
    for place, (name, negatives, labels, read) in LABELLED.items():
        if (folder / place).is_dir():
            documents = {one.id: one for one in read(folder / place)}
            with (LABELS / labels).open(encoding="utf-8") as lines:
                rows = [row for row in csv.DictReader(lines, delimiter="\t") if row["label"] != "grey"]
            pairs = {(row["a"], row["b"]): row["label"] == "dup" for row in rows}
            there = {pair: label for pair, label in pairs.items() if documents.keys() >= set(pair)}
            if not there:
                raise CorpusError(
                    f"{folder / place} has no document of {LABELS / labels}: is it of the published form?"
                )
            print(f"{name}: {len(documents):,} documents, {len(there)} of {len(pairs)} labelled pairs")
            found.append(LabelledSet(name, negatives, documents, there))
    return found


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


def scores_of(sets: Sequence[LabelledSet]) -> dict[str, list[Scores]]:
    """Return the scores of every profile and of every installed peer, by system, on each collection."""
    ours = {name: [_profile_scores(one, rule) for one in sets] for name, rule in PROFILES.items()}
    return ours | {name: [_peer_scores(one, make) for one in sets] for name, make in peers().items()}


def _profile_scores(one: LabelledSet, rule: MatchRule) -> Scores:
    names = dict.fromkeys(name for pair in one.pairs for name in pair)
    pages = {prepared.page.id: prepared for prepared in _prepared(one.documents[name] for name in names)}
    comparer = Comparer(rule, "benchmark")
    return one.score(lambda a, b: VerdictKind(comparer.compare(pages[a], pages[b])["verdict"]) in FLAGS)


def _peer_scores(one: LabelledSet, make: Callable[[], Peer]) -> Scores:
    def called(*pair: str) -> bool:
        fingerprint, decide = make()
        found: tuple[object, object] = (None, None)
        for number, document in enumerate(one.documents[name] for name in pair):
            found = decide(number, fingerprint(f"{document.title}\n{document.text}"))
        return bool(found[0])

    return one.score(called)


def peers() -> dict[str, Callable[[], Peer]]:
    """Return the peers that are installed; LSHBloom needs datasketch[bloom]."""
    packages = {name: "pybloomfilter" if "Bloom" in name else re.split("[ ,]", name)[0] for name in ENGLISH_PEERS}
    return {name: ENGLISH_PEERS[name] for name, package in packages.items() if importlib.util.find_spec(package)}


def builds_of(documents: Sequence[Document]) -> dict[str, Build]:
    """Return each system after it decided the documents on one core, in turns; none if there are too few documents."""
    if len(documents) < (WARM_CHUNKS + 2) * CHUNK:
        return {}
    core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    with ExitStack() as stack:
        file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "pages.jsonl"
        rows = ({"url": f"https://{one.id}.example/", "title": one.title, "text": one.text} for one in documents)
        file.write_text("".join(f"{line}\n" for line in (CHUNK, *map(json.dumps, rows))), encoding="utf-8")
        profiles = {name: name for name in PROFILES} | {name: f"peer {name}" for name in peers()}
        builds = {
            name: stack.enter_context(build_of(name, ROOT, file, profile, core)) for name, profile in profiles.items()
        }
        for turn in track(range(len(documents) // CHUNK), description="chunks", transient=True):
            for build in builds.values():
                build.take_turn(count=turn >= WARM_CHUNKS)
    return builds


def labelled_table(
    sets: Sequence[LabelledSet], scores: Mapping[str, Sequence[Scores]], builds: Mapping[str, Build]
) -> str:
    """Return the table of all systems as Markdown."""
    headings = ["system"]
    for one in sets:
        negatives = Counter(one.pairs.values())[False]
        headings += [f"{one.name}: P / R / F1", f"{one.negatives} merged, of {negatives}"]
    rows = []
    for name, found in scores.items():
        row = [f"**{name}**" if name in PROFILES else name]
        for score in found:
            row += [" / ".join(map(figure, (score.precision, score.recall, score.f1))), str(score.wrong)]
        build = builds.get(name)
        rows.append(
            row + (["–", "–"] if build is None else [f"{build.rate(CHUNK):,.0f}", f"{build.page_bytes(CHUNK):,.0f}"])
        )
    return table([*headings, "pages/s", "bytes a page"], rows)


def draw(sets: Sequence[LabelledSet], scores: Mapping[str, Sequence[Scores]]) -> Figure:
    """Draw precision against recall of every system, a panel for each collection."""
    drawn, panels = plt.subplots(
        1, len(sets), figsize=(3.6 * len(sets) + 2.8, 3.8), layout="constrained", squeeze=False
    )
    for number, (one, axes) in enumerate(zip(sets, panels[0], strict=True)):
        for place, (name, found) in enumerate(scores.items()):
            marker, size = ("*", 13) if name in PROFILES else ("osD^v"[place % 5], 6)
            style = {"marker": marker, "markersize": size, "color": f"C{place % 10}", "linestyle": "", "alpha": 0.8}
            axes.plot(found[number].recall, found[number].precision, label=name, **style)
        axes.set(xlim=(0, 1.03), ylim=(0, 1.03), xlabel="recall", ylabel="precision", title=one.name)
    drawn.legend(*panels[0][0].get_legend_handles_labels(), loc="outside right center", fontsize=7, frameon=False)
    return drawn


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
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the collections that you have")
    parser.add_argument(
        "--docs", type=Path, default=ROOT / "docs", help="where quality.md and images/ are (default: docs/)"
    )
    parser.add_argument("--count", type=int, metavar="N", help="documents to measure speed with (default: all)")
    given = parser.parse_args(arguments)
    tables: dict[str, Callable[[Path], Table]] = {
        "core.jsonl": core_table,
        "core.jsonl.gz": core_table,
        "news-copy": news_copy_table,
    }
    there = [name for name in (*LABELLED, *tables) if (given.folder / name).exists()]
    if not there:
        parser.error(f"{given.folder} has none of {', '.join((*LABELLED, *tables))}")
    try:
        sets = read_labelled(given.folder)
        for name in [name for name in there if name in tables]:
            Console().print(tables[name](given.folder / name))
    except (CorpusError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    if sets:
        scores = scores_of(sets)
        documents = [document for one in sets for document in one.documents.values()][: given.count]
        found = labelled_table(sets, scores, builds_of(documents))
        page = given.docs / "quality.md"
        page.write_text(replaced(page.read_text(encoding="utf-8"), {"yardsticks": found}), encoding="utf-8")
        Picture((), lambda _: draw(sets, scores)).draw({}, given.docs / "images" / "quality-yardsticks")
        print(found)


if __name__ == "__main__":
    main()
