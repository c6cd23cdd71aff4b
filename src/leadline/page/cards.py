"""What explains a number: the card of its probe or rule, read from the file that measures it, in parts."""

import re
from typing import Any

from leadline.core import plugins
from leadline.diagnosis.thresholds import thresholds

PARTS = ("Reference", "Normal", "Cost")
PROBES, RULES = "leadline.probes", "leadline.diagnosis.rules"
OWN = {
    "loss": {
        "title": "The loss that each step was made with.",
        "text": "On the batch of the step, before its update.",
        "reference": "",
        "normal": "Falls below the loss of guessing, ln of the number of classes for cross-entropy.",
    },
    "evaluate": {
        "title": "Loss and accuracy on the test data.",
        "text": "All test samples, in evaluation mode, after the step's update.",
        "reference": "",
        "normal": "Test loss falls with the training loss; where it turns the network begins to learn by heart.",
    },
    "rehearsal": {
        "title": "Losses of brief trainings on copies of the model.",
        "text": "From the same start at other learning rates, and on one batch again and again; they tell a wrong "
        "rate, and labels that do not follow from the inputs, from a network that cannot learn.",
        "reference": "",
        "normal": "Below half the loss of guessing within some fifty steps.",
    },
    "start": {
        "title": "The untrained model on one batch.",
        "text": "`loss`: of the model as it is; `chance`: of guessing, the best constant output; shares of "
        "parameters that the gradient reaches or moves.",
        "reference": "",
        "normal": "A loss near that of guessing; every parameter reached.",
    },
}


def of_probe(name: str) -> dict[str, Any] | None:
    """Title, text with its formulas, normal range, reference and cost; None for a probe that is not ours."""
    if name in OWN:
        return dict(OWN[name])
    return parts(plugins.card(PROBES, name)) if name in plugins.names(PROBES) else None


def of_rule(name: str) -> dict[str, Any]:
    """The same for a rule, with its limits."""
    return parts(plugins.card(RULES, name)) | {"rule": name, "limits": dict(thresholds().get(name, {}))}


def parts(card: str) -> dict[str, str]:
    """A card cut at the lines that begin with `Reference:`, `Normal:` and `Cost:`.

    >>> parts("What it is.\\n\\n    y = x\\n\\nNormal: 1.\\nCost: none.")
    {'title': 'What it is.', 'text': 'y = x', 'reference': '', 'normal': '1.', 'cost': 'none.'}
    """
    title, _, rest = card.partition("\n")
    found: dict[str, list[str]] = {"text": [], **{part.lower(): [] for part in PARTS}}
    current = "text"
    for line in rest.splitlines():
        head = re.match(rf"({'|'.join(PARTS)}): ?(.*)", line)
        if head:
            current, line = head[1].lower(), head[2]
        elif current != "text" and (not line.strip() or line.startswith(" ")):
            current = "text"
        found[current].append(line)
    return {"title": title, **{part: _tidy(lines) for part, lines in found.items()}}


def _tidy(lines: list[str]) -> str:
    """Lines joined to paragraphs; formulas, which are indented, keep theirs."""
    out: list[str] = []
    for line in lines:
        fresh = not out or not out[-1] or line.startswith("  ") or not line or out[-1].startswith("  ")
        if fresh:
            out.append(line.rstrip())
        else:
            out[-1] = f"{out[-1]} {line.strip()}"
    return "\n".join(out).strip()
