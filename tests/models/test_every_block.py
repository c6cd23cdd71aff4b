"""Laws of every file in blocks/: it defines a function of its own name whose blocks keep the shape law."""

import importlib
import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import nn

from leadline.core import plugins
from leadline.core.errors import UsageError
from leadline.models.layers import Style
from leadline.models.residual import Dense, Residual

PACKAGE = "leadline.models.blocks"


def block(name: str) -> Callable[..., nn.Module]:
    return getattr(importlib.import_module(f"{PACKAGE}.{name}"), name)


NAMES = plugins.names(PACKAGE)
OF_IMAGES = [name for name in NAMES if "c_in" in inspect.signature(block(name)).parameters]
STYLES = [Style(norm=n, activation=a) for n, a in product(("batch", "none"), ("relu", "identity"))]


@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize("name", OF_IMAGES)
def test_blocks_of_images_keep_the_shape_law(name: str, style: Style) -> None:
    """(batch, c_in, n, n) -> (batch, c_out, ceil(n / stride), ceil(n / stride)), and every weight gets a gradient."""
    strides = (1, 2) if "stride" in inspect.signature(block(name)).parameters else (1,)
    for stride, (c_in, c_out), size in product(strides, ((4, 8), (8, 8)), (7, 8)):
        if name == "dense" and c_in == c_out:
            continue
        arguments: dict[str, Any] = {"stride": stride} if len(strides) > 1 else {}
        made = block(name)(c_in, c_out, style=style, **arguments).double()
        out = made(torch.randn(3, c_in, size, size, dtype=torch.float64))
        side = -(-size // stride)
        assert out.shape == (3, c_out, side, side)
        out.square().sum().backward()
        assert all(p.grad is not None and p.grad.any() for p in made.parameters())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_IMAGES])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_blocks_of_vectors_keep_the_width(name: str, layers: int) -> None:
    made = block(name)(6, layers=layers, mid="tanh")
    assert made(torch.randn(5, 6)).shape == (5, 6)
    assert sum(isinstance(module, nn.Linear) for module in made.modules()) == layers


@pytest.mark.parametrize("name", NAMES)
def test_without_its_skip_a_block_is_its_branch(name: str) -> None:
    arguments = (4, 8) if name in OF_IMAGES else (6,)
    made = block(name)(*arguments).eval()
    x = torch.randn(2, arguments[0], 8, 8) if name in OF_IMAGES else torch.randn(2, 6)
    if isinstance(made, Residual):
        whole, made.skip = made(x), None
        z = made.before(x)
        y = made.branch(z)
        assert torch.equal(made(x), y if made.post is None else made.post(y))
        assert made.kind == "plain"
        assert not torch.equal(whole, made(x))
    elif isinstance(made, Dense):
        made.skip = None
        assert torch.equal(made(x), torch.cat([torch.zeros_like(x), made.branch(x)], dim=1))


def test_n_layers_in_a_preactivated_block() -> None:
    for n in (1, 2, 3, 4, 5):
        made = block("preactivated_basic")(4, 4, layers=n)
        assert sum(isinstance(module, nn.Conv2d) for module in made.modules()) == n


@pytest.mark.parametrize(("option", "value"), [("norm", "layer"), ("activation", "swish"), ("shortcut", "max")])
def test_unknown_style_lists_the_choices(option: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"unknown {option} '{value}'; expected one of"):
        Style(**{option: value})
