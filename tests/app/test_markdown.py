"""Blocks of Markdown: how they join again, what is final, formulas and prices, rich text."""

import pytest

from app.widgets.markdown import Node, open_fence, rich, split, visible, whole


def formulas(text):
    """The formulas of a text, with how they are written."""
    found = []

    def walk(node: Node):
        if node.type == "formula":
            found.append((node.markup, node.content))
        for child in node.children:
            walk(child)

    for block in split(text):
        if block.node is not None:
            walk(block.node)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a \\(x^2\\) b", [("\\(", "x^2")]),
        ("a \\[x\\] b", [("\\[", "x")]),
        ("$$x$$", [("$$", "x")]),
        ("$$\nx\n+ y\n$$", [("$$", "x\n+ y")]),
        ("\\[\na\n= b\n- c\n\\]\nend", [("\\[", "a\n= b\n- c")]),
        ("text\n\\[\na\n\\]", [("\\[", "a")]),
        ("1. so\n   \\[\n   a\n   \\]", [("\\[", "a")]),
        ("$x$, $y_1$ and ($z$)", [("$", "x"), ("$", "y_1"), ("$", "z")]),
        ("$2 \\times 3$", [("$", "2 \\times 3")]),
        ("| $x$ | b |\n|---|---|\n| 1 | \\(y\\) |", [("$", "x"), ("\\(", "y")]),
        ("**$a$**", [("$", "a")]),
    ],
)
def test_formulas_are_found(text, expected):
    assert formulas(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 today and $10 tomorrow",
        "$5, $10 or US$20; between $5 and 10$ each",
        "$5-$10, $1.50/$2, 5$ and 6$",
        "set $HOME and $PATH, then $HOME/bin:$PATH",
        "the shell: $HOME is set and HOME$",
        "`$x$` and `\\(y\\)`",
        "```\n$x$\n\\[y\\]\n```",
        "    $x$",
        "\\$x\\$ and \\\\(y)",
        "\\( open and $ open, \\[ too",
        "a note \\[1\\], a box \\[ \\]",
        "\\[\na\n\nb\n\\]",
    ],
)
def test_prices_variables_and_code_are_no_formulas(text):
    assert formulas(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "\n\n\nlate\n\n",
        "[ref]: https://a.b/\n",
        "a\n===\n\tx",
        "- a\n\n  b\n- c\n1. d\n\ne",
        "word " * 2_000 + "\n\nend",
        "|a|\n" * 500 + "\nend\n",
        ">" * 40 + "deep\n\nend",
        "\\[\nx\n\\]\n\n$$y$$\n",
        "",
    ],
)
def test_blocks_join_to_the_text_they_came_from(text):
    assert "".join(block.source for block in split(text)) == text


def test_a_block_is_final_only_when_the_line_behind_it_is():
    assert whole(split("para\n#")) == 0
    assert whole(split("para\n# head\n")) == 1
    assert whole(split("para\n\nne")) == 1
    assert whole(split("- a\n*")) == 0
    assert whole(split("- a\n- b\n")) == 1
    assert whole(split("- a\n\nb")) == 0


def test_items_go_on_with_their_list():
    (first, second) = split("3. a\n4. b\n")
    assert (first.item, first.first, second.item, second.first) == (3, True, 4, False)
    (again,) = split("9. b\n", after=first)
    assert (again.item, again.first) == (4, False)
    (other,) = split("- b\n", after=first)
    assert other.first


@pytest.mark.parametrize(
    ("text", "fence"),
    [
        ("```py\nx", ("```", 0, 0, 6)),
        ("~~~~\n~~~\n", ("~~~~", 0, 0, 5)),
        ("1. a\n   ```\n   x", ("```", 3, 3, 12)),
        ("- a\n  - b\n    ```\n", ("```", 4, 4, 18)),
        ("- ```\n  x", ("```", 2, 2, 6)),
    ],
)
def test_an_open_fence_is_known(text, fence):
    found = open_fence(split(text)[-1])
    assert found is not None
    assert (found.markup, found.indent, found.floor, found.begun) == fence


@pytest.mark.parametrize("text", ["```py", "```\nx\n```\n", "> ```\n> x", "    code\n", "para"])
def test_no_other_block_is_an_open_fence(text):
    assert open_fence(split(text)[-1]) is None


NESTED = {
    "a heading behind": "text\n```text\ninner\n```\n## Notes",
    "three": "```md\n```py\nx\n```\n```\n## Notes",
    "three behind one another": "```a\n```\n```b\n```\n``` c d\n```",
    "longer marks": "````py\n```\n```js\n````",
    "other marks": "~~~\n```text\n~~~\n```",
    "in a list": "1. a\n   ```sh\n   x\n   ```",
    "behind a list's marker": "- ```\n  x\n  ```",
    "in a quote": "> ```\n> x\n> ```",
    "as indented code": "    ```\n    x",
}


@pytest.mark.parametrize("before", ["", "> ", "   "], ids=["alone", "quoted", "in a list"])
@pytest.mark.parametrize("marks", ["```markdown", "~~~ Md", "```"])
@pytest.mark.parametrize("inner", NESTED.values(), ids=NESTED)
def test_a_fence_that_holds_markdown_is_one_block(inner, marks, before):
    """TXT-1: the outer block whole, and nothing behind it swallowed."""
    sign = marks[0]
    inner = inner.replace("`", "\0").replace("~", "`" if sign == "~" else "~").replace("\0", sign)
    if marks == "```":
        inner = f"```markdown\n{inner}\n```"
    lines = f"{marks}\n{inner}\n{3 * sign}".split("\n")
    text = "\n".join(before + line for line in lines) + "\n\nAfter\n"
    if before.isspace():
        text = "1. a\n\n" + text
    outer, behind = split(text)
    while outer.node.type != "fence":
        outer = type(outer)("", outer.node.children[-1])
    assert outer.node.content == f"{inner}\n"
    assert behind.node.type == "paragraph"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("```markdown\n```\nx\n```\n```\nAfter", ["fence", "paragraph", "fence", "paragraph"]),
        ("```markdown\n```py\nx\n```\nNo end", ["fence"]),
        ("```markdown\nx\n```\n```\nOne too many", ["fence", "fence"]),
        ("```python\n```js\nx\n```\nAfter", ["fence", "paragraph"]),
        ("````markdown\n```text\n````\nAfter", ["fence", "paragraph"]),
        ("```markdown\n`` ` ``\n```js` `\n```\nAfter", ["fence", "paragraph"]),
    ],
    ids=["no language", "no end", "too many", "no markdown", "longer outside", "no marks"],
)
def test_other_fences_end_at_the_next_marks_alone(text, kinds):
    assert [block.node.type for block in split(text)] == kinds
    assert "".join(block.source for block in split(text)) == text


@pytest.mark.parametrize("sign", [chr(c) for c in (*range(32), *range(0x7F, 0xA0))])
def test_control_characters_become_visible_one_for_one(sign):
    shown = visible(f"a{sign}b")
    kept = {"\t": "\t", "\n": "\n", "\r": ""}
    assert shown[1:-1] == kept.get(sign, shown[1:-1])
    assert len(shown) == (2 if sign == "\r" else 3)
    assert sign in "\t\n" or sign not in shown


def test_rich_text_holds_no_markup_of_the_answer():
    html = rich("<script>x</script> <img src=q> [a](javascript:x) ![i](file:///e) [s](smb://h/s)")
    assert "<script" not in html
    assert "<img" not in html
    assert "href" not in html
    assert "file:///e" in html
