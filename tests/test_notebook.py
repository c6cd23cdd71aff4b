"""What a notebook shows: the tables that are printed, as HTML in which nothing of the user's is markup."""

from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import leadline as ll

EVIL = "<img src=x onerror=alert(1)>&amp;"
TAGS = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li"}


class Reader(HTMLParser):
    """The tags that were opened, checked to be closed, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style", "class"}
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten())
    for k in range(6):
        model.add_module(f"{EVIL}{k}", nn.Linear(8, 8))
    model.get_submodule(f"{EVIL}3").requires_grad_(False)
    x, y = torch.randn(12, 2, 2, 2), torch.arange(12) % 8
    return {
        "anatomy": ll.anatomy(model, x),
        "profile": ll.sound(model, (x, y), F.cross_entropy, ["light", "gradient_range"]),
        "diagnosis": ll.check(model, (x, y), F.cross_entropy, steps=4),
    }


@pytest.mark.parametrize("name", ["anatomy", "profile", "diagnosis"])
def test_names_are_text_and_numbers_are_those_that_are_printed(shown: dict[str, Any], name: str) -> None:
    found = Reader(shown[name]._repr_html_())
    assert set(found.tags) <= TAGS and "table" in found.tags
    said = " ".join(" ".join(found.words).split())
    assert EVIL in said
    for line in str(shown[name]).splitlines():
        for word in line.split():
            assert word in said or word.rstrip(".").isdigit(), (word, line)


def test_curves_along_depth_are_drawn(shown: dict[str, Any]) -> None:
    for name in ("profile", "diagnosis"):
        assert any(mark in str(shown[name]) for mark in "▁▂▃▄▅▆▇█"), name
    deep = ll.anatomy(nn.Sequential(*(nn.Linear(k + 1, k + 2) for k in range(5))), torch.ones(2, 1))
    assert "boundary sizes  ▁▂▄▅▇█  2 to 12" in str(deep)
