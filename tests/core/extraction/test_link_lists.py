"""The compiled pruning gives what a plain recursive definition gives, on any tree."""

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml.html import HtmlElement

from dedup_service.core.extraction.boilerplate import BLOCKS, INLINE, JSON_LD, SEPARATORS, USELESS, parse, prune
from dedup_service.core.extraction.link_lists import FARM_SHARE, LINK_SHARE, MAX_DEPTH, MIN_LINKS, SENTENCE_LENGTH

SENTENCE = "This sentence is longer than forty characters, as sentences are. "


@dataclass
class Node:
    """An element: its content is texts and elements, in order."""

    tag: str
    attributes: dict[str, str]
    content: list["str | Node"] = field(default_factory=list)

    @property
    def children(self) -> list["Node"]:
        return [part for part in self.content if isinstance(part, Node)]

    @property
    def texts(self) -> list[str]:
        """Texts between the child elements, in one piece each."""
        texts = [""]
        for part in self.content:
            if isinstance(part, Node):
                texts.append("")
            else:
                texts[-1] += part
        return texts


def read(element: HtmlElement) -> Node:
    """Return a tree of lxml as nodes, with the texts between two elements in one piece."""
    node = Node(element.tag, dict(element.attrib), [element.text or ""])
    for child in element:
        node.content += [read(child), child.tail or ""]
    return node


def without(node: Node, gone: list[Node]) -> Node:
    """Return the tree without some nodes and all inside them; the text behind them stays."""
    kept = (part for part in node.content if isinstance(part, str) or not any(part is each for each in gone))
    return joined(
        Node(node.tag, node.attributes, [part if isinstance(part, str) else without(part, gone) for part in kept])
    )


def unwrapped(node: Node) -> Node:
    content: list[str | Node] = []
    for part in node.content:
        child = unwrapped(part) if isinstance(part, Node) else part
        content += child.content if isinstance(child, Node) and child.tag in INLINE else [child]
    return joined(Node(node.tag, node.attributes, content))


def joined(node: Node) -> Node:
    content: list[str | Node] = [node.texts[0]]
    for child, text in zip(node.children, node.texts[1:], strict=True):
        content += [child, text]
    return Node(node.tag, node.attributes, content)


def inside(node: Node) -> list[Node]:
    return [found for child in node.children for found in (child, *inside(child))]


def length(node: Node) -> int:
    """Characters of text, each piece without the spaces around it."""
    return sum(len(text.strip()) for text in node.texts) + sum(map(length, node.children))


def is_link(node: Node) -> bool:
    return node.tag == "a" and "href" in node.attributes


def linked(node: Node, depth: int) -> tuple[int, int]:
    """Characters of link text and links with text; what is nested too deep is no link."""
    if depth > MAX_DEPTH:
        return 0, 0
    if is_link(node):
        return length(node), int(length(node) > 0)
    below = [linked(child, depth + 1) for child in node.children]
    return sum(chars for chars, _ in below), sum(links for _, links in below)


def longest_run(node: Node, depth: int) -> int:
    """The longest piece of text outside links; what is nested too deep is one piece."""
    if depth > MAX_DEPTH:
        return length(node)
    if is_link(node):
        return 0
    runs = [longest_run(child, depth + 1) for child in node.children]
    return max(*(len(text.strip()) for text in node.texts), *runs, 0)


def is_removed(node: Node, depth: int) -> bool:
    text = length(node)
    if not text:
        return node.tag not in SEPARATORS
    chars, links = linked(node, depth)
    share = LINK_SHARE if longest_run(node, depth) < SENTENCE_LENGTH else FARM_SHARE
    return node.tag in BLOCKS and links >= MIN_LINKS and chars > share * text


def removed(node: Node, depth: int) -> list[Node]:
    """The nodes inside this one to remove, outermost only."""
    if depth > MAX_DEPTH:
        return []
    found: list[Node] = []
    for child in node.children:
        found += [child] if is_removed(child, depth) else removed(child, depth + 1)
    return found


def pruned(root: Node) -> Node:
    """Prune by the definition."""
    useless = [
        node
        for node in inside(root)
        if node.tag in USELESS and not (node.tag == "script" and node.attributes.get("type") == JSON_LD)
    ]
    root = unwrapped(without(root, useless))
    body = next((child for child in root.children if child.tag == "body"), None)
    return root if body is None else without(root, removed(body, 1))


def check(markup: str) -> None:
    root = parse(f"<html><body>{markup}</body></html>".encode())
    assert root is not None
    expected = pruned(read(root))
    prune(root)
    assert read(root) == expected


TEXTS = st.sampled_from(
    ["", " ", "\n", "\u3000", "\xa0", "word", " two words ", "菜价平稳", SENTENCE, "&amp;&lt;", "&#13;"]
)
LEAVES = st.sampled_from(
    (
        *("<br>", "<hr>", "<img src=a>", "<input>", "<!-- a comment -->", "<?x?>", "<x-a></x-a>", "<button>x</button>"),
        *("<script>a</script>", f"<script type='{JSON_LD}'>{{}}</script>", "<nav>menu<svg></svg></nav>"),
    )
)
OPENINGS = st.sampled_from(
    (
        *("a href=/", "a href=/", "a href=/", "a name=x", "div", "ul", "li", "p", "span", "b", "td", "table", "tr"),
        *("h2", "article", "em", "dl", "section", "form", "x-b", "noscript", "pre"),
    )
)
TREES = st.recursive(
    st.tuples(LEAVES | TEXTS, TEXTS).map("".join),
    lambda parts: st.builds(
        lambda opening, parts, tail: f"<{opening}>{''.join(parts)}</{opening.split()[0]}>{tail}",
        OPENINGS,
        st.lists(parts, max_size=5),
        TEXTS,
    ),
    max_leaves=40,
)


@given(st.lists(TREES, max_size=4).map("".join))
@example("<a href=/>x<div><a href=/>y</a></div></a>z<a href=/>w</a>")
@example("<ul><li><a href=/>one</a> 3-1<li><a href=/>two</a> 3-2</ul>tail<b></b>")
@example("<div><a href=/>" + "x" * 30 + "</a><a href=/>" + "y" * 31 + "</a>" + SENTENCE[:39] + "</div>")
@example("<div><a href=/>" + "x" * 60 + "</a><a href=/>" + "y" * 60 + "</a>" + SENTENCE[:40] + "</div>")
def test_pruning_is_as_defined(markup: str) -> None:
    """Lists of links, empty elements, nested links, comments, scripts and the texts behind them."""
    check(markup)


@settings(max_examples=25)
@given(depth=st.integers(MAX_DEPTH - 8, MAX_DEPTH + 3), trees=st.lists(TREES, min_size=1, max_size=3), opening=OPENINGS)
def test_pruning_near_the_depth_limit_is_as_defined(depth: int, trees: list[str], opening: str) -> None:
    """What is nested deeper than the limit counts as text."""
    check("<div>" * depth + f"<{opening}>" + "".join(trees))


def test_text_below_the_depth_limit_is_a_run() -> None:
    """Links beside a sentence that is nested too deep are no list of links, as beside any sentence."""
    links = f"<a href=/>{'x' * 30}</a><a href=/>{'y' * 31}</a>"
    for text in (SENTENCE[:39], SENTENCE[:41]):
        check("<div>" * (MAX_DEPTH - 4) + links + "<section>" * 8 + text)
