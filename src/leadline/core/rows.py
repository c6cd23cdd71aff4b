"""Rows of words as aligned text, with what is alike said once."""

import re
from collections.abc import Collection, Iterable, Sequence

Row = tuple[str, ...]


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> str:
    """Columns as wide as their widest cell, those in `right` flush right; empty columns are left out.

    >>> print(grid(("name", "n"), [("a", "10"), ("bc", "2")], right=(1,)))
      name   n
      a     10
      bc     2
    """
    used = [index for index in range(len(headings)) if any(row[index] for row in rows)]
    widths = {index: max(len(row[index]) for row in (headings, *rows)) for index in used}
    lines = []
    for row in (headings, *rows):
        cells = [row[i].rjust(widths[i]) if i in right else row[i].ljust(widths[i]) for i in used]
        lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def runs(rows: Sequence[tuple[int, Row]], *, breaks: Collection[int]) -> list[list[tuple[int, Row]]]:
    """Numbered rows that follow each other and differ only in their first cell, together; not across `breaks`.

    >>> [len(run) for run in runs([(0, ("a", "x")), (1, ("b", "x")), (2, ("c", "y"))], breaks=())]
    [2, 1]
    """
    found: list[list[tuple[int, Row]]] = []
    for number, row in rows:
        if found and found[-1][-1][1][1:] == row[1:] and number - 1 not in breaks:
            found[-1].append((number, row))
        else:
            found.append([(number, row)])
    return found


def alike(names: Iterable[str]) -> str:
    """Names that differ only in their numbers, once.

    >>> alike(["layers.0.proj", "layers.1.proj", "fc"])
    'layers.*.proj (2), fc'
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(re.sub(r"\d+", "*", name), []).append(name)
    return ", ".join(same[0] if len(same) == 1 else f"{pattern} ({len(same)})" for pattern, same in groups.items())
