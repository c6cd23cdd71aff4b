"""Explain a finding: what is measured, what is normal, what helps, and where it is from."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tyro.conf import Positional

from leadline.cli._words import parse, print_json
from leadline.core import plugins
from leadline.core.errors import unknown


@dataclass(frozen=True)
class Explain:
    """Explain a finding of `leadline check`: what is measured, what is normal, what helps, and where it is from."""

    id: Positional[str]
    """the finding's id, as LL101, or its rule's name"""
    json: bool = False
    """as JSON"""


def run(words: Sequence[str]) -> int:
    options = parse(Explain, words, verb="explain")
    found = explain(options.id)
    if options.json:
        print_json(found)
    else:
        sys.stdout.write(text(found))
    return 0


def explain(id: str) -> dict[str, Any]:
    """What is known of a finding, as plain data."""
    from leadline.diagnosis.judge import PACKAGE, rules
    from leadline.diagnosis.thresholds import thresholds

    known = {module.ID: name for name, module in rules().items()}
    name = known.get(id.upper(), id.replace("-", "_"))
    if name not in known.values():
        raise unknown("finding", id, known, listing="leadline list rules")
    module = rules()[name]
    return {
        "id": module.ID,
        "rule": name,
        "title": module.TITLE,
        "what": plugins.card(PACKAGE, name),
        "limits": dict(thresholds().get(name, {})),
        "follows": list(module.EXPLAINS),
        "change": module.CHANGE,
        "remedies": [asdict(remedy) for remedy in module.REMEDIES],
        "reference": module.REFERENCE,
    }


def text(found: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"{found['id']} {found['title']}", "", found["what"], ""]
    lines += (
        [f"limits (thresholds.yaml, {found['rule']}): {json.dumps(found['limits'])[1:-1]}"] if found["limits"] else []
    )
    lines += [f"explains, when both are seen: {', '.join(found['follows'])}"] if found["follows"] else []
    lines += [f"would change the verdict: {found['change']}", "remedies, best first:"]
    lines += [f"  {rank}. {one['name']}: {one['why']}" for rank, one in enumerate(found["remedies"], 1)]
    return "\n".join([*lines, f"reference: {found['reference']}", ""])
