"""How deep the elements of an HTML text stand in each other; what is too deep takes minutes to clean."""

from __future__ import annotations

import re

DEEPEST = 256
"""Browsers themselves stop at 512; pages that people wrote stay below 100."""
_MARK = re.compile(r"<!--|<(/?)([a-z][a-z0-9]*)")
# Elements without content, and those that the next of their kind ends: many pages never close them.
_NOT_COUNTED_NAMES = """
area base br col embed hr img input link meta param source track wbr
p li dt dd tr td th thead tbody tfoot option optgroup colgroup
"""
_NOT_COUNTED = frozenset(_NOT_COUNTED_NAMES.split())
_RAW_TEXT = frozenset({"script", "style", "textarea", "title"})


def nesting(text: str) -> int:
    """The depth of the deepest element, in one pass over the text.

    >>> nesting("<div><p>one<p>two<ul><li>three</ul></div><b>four</b>"), nesting("<div>" * 1000)
    (2, 1000)
    """
    text = text.lower()
    depth = deepest = position = 0
    while (found := _MARK.search(text, position)) is not None:
        position = found.end()
        if found[0] == "<!--":
            end = text.find("-->", position)
        elif found[1]:
            depth = max(0, depth - (found[2] not in _NOT_COUNTED))
            continue
        elif found[2] in _RAW_TEXT:
            end = text.find(f"</{found[2]}", position)
            # Past the closing tag, which closes nothing that was counted.
            end = end if end < 0 else end + 2
        else:
            depth += found[2] not in _NOT_COUNTED
            deepest = max(deepest, depth)
            continue
        if end < 0:
            break
        position = end
    return deepest
