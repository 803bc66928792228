"""Documents as HTML: cleaned, because strangers wrote them, with the words of the query marked."""

from __future__ import annotations

import html
import re
from functools import lru_cache

from gradrank.errors import MissingExtraError
from gradrank.labeling.project.html_nesting import DEEPEST, nesting

# What structures a text. No links, images, frames, styles or scripts: nothing loads, nothing leads away.
_TAG_NAMES = """
p br hr div span b i em strong u s sub sup small q cite code pre blockquote ul ol li dl dt dd
h1 h2 h3 h4 h5 h6 table caption thead tbody tfoot tr th td
"""
_TAGS = frozenset(_TAG_NAMES.split())
_DROPPED_WITH_CONTENT = frozenset({"script", "style", "noscript", "template", "iframe", "object", "svg", "math"})
_ATTRIBUTES = {"td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}}
_TAG = re.compile(r"(<[^<>]*>)")
_WORD = re.compile(r"\w+")
_PARAGRAPHS = re.compile(r"\n\s*\n")
_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")
# Marks that turn the direction of the text that follows, which may be the page's own.
_CONTROL |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "")
_COMMON_WORDS = """
a an and are as at be by can did do does for from has have he her his how i if in is it its me my no not of on or our
she so than that the their them then there these they this to us was we were what when where which who whom whose why
will with would you your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@lru_cache(maxsize=2048)
def document_html(body: str, kind: str, query: str) -> str:
    """A document as HTML that is safe to put into a page, with the words of the query in ``<mark>``.

    >>> document_html("Rain & <b>shine</b>", "text", "rain")
    '<p><mark>Rain</mark> &amp; &lt;b&gt;shine&lt;/b&gt;</p>'
    """
    pattern = query_pattern(query)
    body = body.translate(_CONTROL)
    if kind == "html" and nesting(body) > DEEPEST:
        # The cleaner would take minutes; the words are there all the same.
        body, kind = html.unescape(_TAG.sub(" ", body)), "text"
    if kind == "html":
        # The cleaner writes "<" as an entity wherever it is not a tag, and of attributes only numbers are left.
        parts = _TAG.split(_cleaned(body))
        return "".join(part if part.startswith("<") else marked(html.unescape(part), pattern) for part in parts)
    paragraphs = [part.strip() for part in _PARAGRAPHS.split(body.replace("\r\n", "\n"))]
    return "".join(f"<p>{marked(part, pattern)}</p>" for part in paragraphs if part)


def marked(text: str, pattern: re.Pattern[str] | None) -> str:
    """Text as HTML with everything that the pattern finds in ``<mark>``.

    >>> marked("Cats < cats", query_pattern("cat"))
    '<mark>Cats</mark> &lt; <mark>cats</mark>'
    """
    if pattern is None:
        return html.escape(text)
    pieces, end = [], 0
    for found in pattern.finditer(text):
        pieces += [html.escape(text[end : found.start()]), f"<mark>{html.escape(found[0])}</mark>"]
        end = found.end()
    return "".join([*pieces, html.escape(text[end:])])


@lru_cache(maxsize=512)
def query_pattern(query: str) -> re.Pattern[str] | None:
    """A pattern for the words of a query with their plainest endings; None if only common words are in it."""
    words = {word.casefold() for word in _WORD.findall(query)}
    words = {word for word in words if word not in _COMMON and (len(word) > 1 or not word.isascii())}
    if not words:
        return None
    choices = []
    for word in sorted(words, key=lambda word: (-len(word), word)):
        if word.isascii():
            # "running" finds "run" and "runs", "scored" finds "score".
            stem = re.sub(r"(?<=\w\w\w)(?:es|s|ing|ed)$", "", word)
            stem = re.sub(r"(?<=\w)([b-df-hj-np-tv-z])\1$", r"\1", stem) if stem != word else stem
            choices.append(rf"\b{re.escape(stem)}{stem[-1]}?(?:e|s|es|ed|ing)?\b|\b{re.escape(word)}\b")
        else:
            # Not every script puts blanks between words.
            choices.append(re.escape(word))
    return re.compile("|".join(choices), re.IGNORECASE)


def plain(text: str) -> str:
    """Text without signs that HTML does not allow or that turn the direction of what follows."""
    return text.translate(_CONTROL)


def _cleaned(body: str) -> str:
    try:
        import nh3
    except ImportError:
        raise MissingExtraError("nh3", "labeling") from None
    return nh3.clean(
        body,
        tags=set(_TAGS),
        clean_content_tags=set(_DROPPED_WITH_CONTENT),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        attribute_filter=lambda _tag, _name, value: value if value.isascii() and value.isdigit() else None,
        strip_comments=True,
        generic_attribute_prefixes=set(),
    )
