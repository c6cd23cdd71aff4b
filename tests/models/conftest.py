"""One small network for every prefix and variant of every family, in float64, and a batch for it."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.models.chain import Chain
from leadline.models.family import Family, Named
from leadline.models.names import families


def smallest(prefix: str, family: Family, variant: str | None) -> Named:
    """The network of the least depth (and widening 1) that this prefix and variant can name."""
    preset = {**family.prefixes[prefix], **(family.variants[variant] if variant else {})}
    for depth, count in product(range(2, 60), family.numbers):
        numbers = (depth, 1)[:count]
        named = Named("-".join([prefix, *map(str, numbers), *([variant] if variant else [])]), family, numbers, preset)
        try:
            with torch.device("meta"):
                build(named)
        except UsageError:
            continue
        return named
    raise AssertionError(f"no depth below 60 for {prefix}")


def build(named: Named, **options: Any) -> Chain:
    stages = 4 if named.preset.get("stem") == "imagenet" else 3
    widths = {"widths": (4, 8, 12, 16)[:stages]} if "widths" in named.family.options else {}
    return named.build(**widths, **options)


def every() -> Iterator[Named]:
    for family in families().values():
        for prefix in family.prefixes:
            yield from (smallest(prefix, family, variant) for variant in (None, *family.variants))


SMALL = {named.name: named for named in every()}


@pytest.fixture(params=SMALL)
def named(request: pytest.FixtureRequest) -> Named:
    return SMALL[request.param]


@pytest.fixture
def model(named: Named) -> Chain:
    return build(named).double()


@pytest.fixture
def batch(model: Chain) -> Tensor:
    channels, *size = model.input_shape
    side = max(8, model.takes.smallest)
    return torch.randn(3, channels, *[side for _ in size], dtype=torch.float64)
