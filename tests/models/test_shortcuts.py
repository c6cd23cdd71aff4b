"""Networks of Li et al.: the same layers cut into shortcuts of other depths, and the linear map of eq. (1)."""

import pytest
import torch
from torch import nn

from leadline.models import create
from leadline.models.families.shortcut_resnet import differences


@pytest.mark.parametrize("depth", [110, 218])
def test_shortcut_depths_keep_the_parameters(depth: int) -> None:
    """Exactly where n divides the layers of a stage, within 3% elsewhere, and the note says how many."""
    for n, difference in differences(depth).items():
        with torch.device("meta"):
            model, two = create(f"shortcut-resnet-{depth}", shortcut=n), create(f"shortcut-resnet-{depth}")
        assert difference == model.parameter_count - two.parameter_count
        assert abs(difference) < 0.03 * two.parameter_count
        layers = (depth - 2) // 3
        assert (difference == 0) == (layers % n == 0) == (model.note == "")
        assert model.note == "" or (f"{difference:+,} parameters" in model.note and model.note in str(model))
        assert all(len([m for m in block.branch.modules() if isinstance(m, nn.Conv2d)]) == n for block in model.blocks)


def test_note_without_batch_norm() -> None:
    with torch.device("meta"):
        five, two = (create("shortcut-resnet-110", shortcut=n, norm="none") for n in (5, 2))
    assert f"{five.parameter_count - two.parameter_count:+,} parameters" in five.note


@pytest.mark.parametrize("shortcut", [1, 2, 3, 4])
@pytest.mark.parametrize("plain", [False, True])
def test_linear_shortcut_net_is_its_matrix_product(shortcut: int, plain: bool) -> None:
    """y = prod_r (prod_l W^{r,l} + I) x, the later factors on the left; without skips the plain product."""
    model = create("shortcut-net", shortcut=shortcut, units=3, width=5, init="xavier", plain=plain).double()
    total = torch.eye(5, dtype=torch.float64)
    for r in range(1, 4):
        product = torch.eye(5, dtype=torch.float64)
        for layer in range(1, shortcut + 1):
            product = model.state_dict()[f"blocks.unit{r}.branch.linear{layer}.weight"] @ product
        total = (product if plain else product + torch.eye(5)) @ total
    x = torch.randn(7, 5, dtype=torch.float64)
    assert torch.allclose(model(x), x @ total.T, atol=1e-12)
    assert model.depth == 3 * shortcut


def test_equation_3() -> None:
    """y = prod_r (W^{r,2} ReLU(W^{r,1} x + b_r) + x)."""
    model = create("shortcut-net-4-equation3", width=5).double()
    y = x = torch.randn(7, 5, dtype=torch.float64)
    for r in (1, 2):
        state = {
            name: model.state_dict()[f"blocks.unit{r}.branch.{name}"] for name in ("linear1.weight", "linear2.weight")
        }
        bias = model.state_dict()[f"blocks.unit{r}.branch.linear1.bias"].normal_()
        y = (y @ state["linear1.weight"].T + bias).relu() @ state["linear2.weight"].T + y
    assert torch.allclose(model(x), y, atol=1e-13)
