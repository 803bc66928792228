"""Documents by strangers: whatever they hold, only plain structure is left."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradrank.labeling.web.documents import document_html, query_pattern

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<a href='javascript:alert(1)'>x</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<form action=/owner/void method=post><button>x</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<style>body{display:none}</style>",
    "<p style='background:url(http://evil.example)'>x</p>",
    "<base href='http://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "<td colspan='1\" onmouseover=alert(1) x=\"'>x</td>",
    "<p id=main class=away data-key=a>x</p>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<template><script>alert(1)</script></template>",
    "<<script>alert(1)//<</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<mark><b onclick=alert(1)>sky</b></mark>",
    "<!-- <script>alert(1)</script> -->",
    "\x00<scr\x00ipt>alert(1)</scr\x00ipt>",
]
TAGS = """
p br hr div span b i em strong u s sub sup small mark q cite code pre blockquote
ul ol li dl dt dd h1 h2 h3 h4 h5 h6 table caption thead tbody tfoot tr th td
"""
ALLOWED = set(TAGS.split())
PIECES = [*"<>\"'&=/ ;!-", "script", "img", "td", "colspan", "onerror", "sky", "&lt;", "&#60;", "<b>", "</b>"]


class Structure(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.other: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    handle_decl = handle_pi = handle_comment


def check(text: str) -> Structure:
    seen = Structure(text)
    assert seen.other == []
    for tag, attributes in seen.tags:
        assert tag in ALLOWED
        assert set(attributes) <= {"colspan", "rowspan"}
        assert all((value or "").isdigit() for value in attributes.values())
    return seen


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_leave_only_structure(attack: str) -> None:
    check(document_html(attack, "html", "sky alert"))


@pytest.mark.parametrize("attack", ATTACKS)
def test_in_text_everything_is_text(attack: str) -> None:
    seen = check(document_html(attack, "text", "sky alert"))
    assert {tag for tag, _ in seen.tags} <= {"p", "mark"}
    assert seen.text == attack.replace("\x00", "\N{REPLACEMENT CHARACTER}")


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_mixture_leaves_only_structure(text: str) -> None:
    check(document_html(text, "html", "sky td script"))
    assert check(document_html(text, "text", "sky")).text == text.strip()


def test_structure_stays() -> None:
    table = document_html("<table><tr><td colspan=2 width=9>sky</td></tr></table>", "html", "sky")
    assert '<td colspan="2"><mark>sky</mark></td>' in table


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("why is the sky blue", "The sky is blue.", ["sky", "blue"]),
        ("running dogs", "A dog RUNS and a hotdog runs; running", ["dog", "RUNS", "runs", "running"]),
        ("c++ (tips)", "Tips for c++ (tip)", ["Tips", "tip"]),
        ("天気 予報", "明日の天気は", ["天気"]),
        ("the of and", "the of and", []),
        ("", "anything", []),
        ("<script>", "a script <script>", ["script", "script"]),
    ],
)
def test_words_of_the_query_are_marked(query: str, text: str, marked: list[str]) -> None:
    shown = document_html(text, "text", query)
    assert [part.partition("</mark>")[0] for part in shown.split("<mark>")[1:]] == [html.escape(m) for m in marked]
    assert Structure(shown).text == text


def test_patterns_are_made_of_words_only() -> None:
    assert query_pattern("(((((.*)+)+ [a-z") is None


def test_direction_marks_cannot_turn_the_page() -> None:
    assert document_html("a\u202eb\u2066c", "text", "") == "<p>abc</p>"


def test_paragraphs() -> None:
    assert document_html("one\r\n\r\ntwo\nlines\n\n\n", "text", "") == "<p>one</p><p>two\nlines</p>"


def test_elements_without_end_are_shown_as_their_text() -> None:
    deep = document_html("<div>" * 70_000 + "the sky &amp; <b>sea</b>", "html", "sky")
    assert deep == "<p>the <mark>sky</mark> &amp;  sea</p>"
