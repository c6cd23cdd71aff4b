"""Words and tables as HTML for notebooks; every text is escaped, nothing is fetched, nothing runs."""

from collections.abc import Collection, Iterable, Sequence
from html import escape

Row = Sequence[str]

_CELL = "padding:0 .6em;white-space:pre;text-align:"


def block(*parts: str) -> str:
    """What one object shows."""
    return f'<div class="leadline">{"".join(parts)}</div>'


def words(text: str, *, strong: bool = False) -> str:
    """A paragraph.

    >>> words("a < b")
    '<p>a &lt; b</p>'
    """
    said = escape(text)
    return f"<p>{f'<strong>{said}</strong>' if strong else said}</p>"


def listing(items: Iterable[str], *, numbered: bool = False) -> str:
    """The items below each other; nothing if there are none."""
    kind = "ol" if numbered else "ul"
    inside = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<{kind}>{inside}</{kind}>" if inside else ""


def table(headings: Row, rows: Iterable[Row], *, right: Collection[int] = ()) -> str:
    """Columns in `right` flush right; empty columns are left out."""
    kept = [tuple(row) for row in rows]
    used = [index for index in range(len(headings)) if any(row[index] for row in kept)]

    def cell(tag: str, index: int, text: str) -> str:
        return f'<{tag} style="{_CELL}{"right" if index in right else "left"}">{escape(text)}</{tag}>'

    def line(row: Row, tag: str) -> str:
        return f"<tr>{''.join(cell(tag, index, row[index]) for index in used)}</tr>"

    body = "".join(line(row, "td") for row in kept)
    return f"<table><thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>"
