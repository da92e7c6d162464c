"""Tests for what is removed from a tree before the main text is searched."""

from lxml import html

from dedup_service.core.extraction.boilerplate import parse, prune

SENTENCE = "这一段说明了旧码头为什么要在冬天到来之前完成重建，以及渔民们在施工期间可以使用哪些临时设施。"


def pruned(body: str) -> str:
    """Return the body after pruning, as markup."""
    root = parse(f"<html><body>{body}</body></html>".encode())
    assert root is not None
    prune(root)
    return html.tostring(root.find("body"), encoding="unicode")


def test_list_of_links() -> None:
    """A list whose text is mostly links is removed, together with its dates."""
    assert (
        pruned("<p>一</p><ul><li><a href=/1>菜价平稳</a> 3-1</li><li><a href=/2>步道贯通</a> 3-2</li></ul>")
        == "<body><p>一</p></body>"
    )


def test_paragraph_with_links() -> None:
    """A block with a sentence stays, with its links."""
    block = f'<p>{SENTENCE}<a href="/1">码头</a><a href="/2">渔民</a></p>'
    assert pruned(block) == f"<body>{block}</body>"


def test_links_beside_an_article() -> None:
    """Only the list is removed if article and list share a block."""
    article = f"<div><p>{SENTENCE}</p></div>"
    assert (
        pruned(f"<div>{article}<div><a href=/1>菜价平稳</a><a href=/2>步道贯通</a></div></div>")
        == f"<body><div>{article}</div></body>"
    )


def test_single_link() -> None:
    """One link is not a list."""
    assert "码头" in pruned('<p><a href="/1">码头</a></p>')


def test_anchors_are_not_links() -> None:
    """Named anchors, which lead nowhere, are not counted as links."""
    block = '<div><a name="1">第一节</a><a name="2">第二节</a></div>'
    assert pruned(block) == f"<body>{block}</body>"


def test_empty_elements_and_scripts() -> None:
    """Elements without text are removed; line breaks, cells and the text around them stay."""
    body = "前<img src=a><script>1</script>中<br>后<div><span></span></div><table><tr><td></td><td>格</td></tr></table>"
    assert pruned(body) == "<body>前中<br>后<table><tr><td></td><td>格</td></tr></table></body>"


def test_inline_markup() -> None:
    """Bold and coloured words are unwrapped."""
    assert pruned("<p>旧<b>码</b><span>头</span></p>") == "<body><p>旧码头</p></body>"


def test_beyond_the_depth_limit() -> None:
    """An element that is nested too deep to be walked counts as text and stays."""
    assert SENTENCE in pruned("<div>" * 250 + SENTENCE)


def characters(body: str) -> int:
    """How many characters of text a body has, as `prune` counts them."""
    root = parse(f"<html><head><title>标题</title></head><body>{body}</body>尾</html>".encode())
    assert root is not None
    return prune(root)


def test_characters_of_a_page() -> None:
    """Lists of links count, since readers see them; scripts, menus, forms and white space between elements do not."""
    assert characters("") == 0
    assert characters(f"<p>{SENTENCE}</p>") == len(SENTENCE)
    links = "<ul><li><a href=/1>菜价平稳</a> 3-1</li><li><a href=/2>步道贯通</a> 3-2</li></ul>"
    assert characters(f"<p>{SENTENCE}</p>\n  {links} ") == len(SENTENCE) + 14
    unseen = '<script>x = 1</script><script type="application/ld+json">{"a": 1}</script><style>p {}</style>'
    forms = "<nav>首页</nav><button>登录</button><select><option>一</option></select>"
    assert characters(f"{unseen}<p>{SENTENCE}</p>{forms}") == len(SENTENCE)
    assert characters(f"{'<b></b>' * 2100}<b>{SENTENCE}</b>{unseen}") == len(SENTENCE)
