"""Against separate fits of every prefix by NumPy and by a plain optimiser, and networks that attain the bound."""

import math

import numpy as np
import pytest
import torch
from foreign import build
from probes.moment import foreign_moment, moment, read
from torch import Tensor, nn
from torch.nn import functional as F

from leadline import models
from leadline.models.linear_maps import matrix
from leadline.probes._losses import task
from leadline.probes.risk_lower_bound import RiskLowerBound

N = 120


def columns(model: nn.Module, x: Tensor) -> list[np.ndarray]:
    with torch.no_grad():
        return [v.numpy() for v in model.eval().features(x).values()]


def least_squares(vs: list[np.ndarray], y: np.ndarray) -> tuple[np.ndarray, float]:
    v = np.concatenate([*vs, np.ones((len(y), 1))], axis=1)
    heads = np.linalg.lstsq(v, y, rcond=None)[0]
    return heads, float(((y - v @ heads) ** 2).sum() / len(y))


def halved(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).square().sum(1).mean() / 2


@pytest.mark.parametrize(
    ("loss_fn", "factor"), [(halved, 0.5), (F.mse_loss, 1 / 3), (lambda a, b: (a - b).square().sum(1).mean(), 1.0)]
)
def test_squared_error_of_every_prefix(loss_fn: object, factor: float) -> None:
    torch.manual_seed(0)
    model = models.create("resnest-fc-8", num_classes=3).double()
    x, y = torch.randn(N, 10, dtype=torch.float64), torch.randn(N, 3, dtype=torch.float64)
    found = read(RiskLowerBound(), moment(model, x, y, loss_fn))
    vs = columns(model, x)
    risks = [factor * least_squares(vs[: k + 1], y.numpy())[1] for k in range(len(vs))]
    assert found["risk/prefix"].value == pytest.approx(risks[1:], rel=1e-9)
    assert found["gain"].value == pytest.approx(-np.diff(risks), rel=1e-6)
    assert found["bound"].value == found["reached"].value == pytest.approx(risks[-1], rel=1e-9)
    risk = float(loss_fn(model.eval()(x), y).detach())
    assert found["risk"].value == pytest.approx(risk, rel=1e-9)
    assert found["excess"].value == pytest.approx(risk - risks[-1], rel=1e-9) and found["excess"].value > 0
    assert found["bound"].notes[-1] == f"squared error, {N} samples, eval mode"


def test_cross_entropy_against_a_plain_optimiser() -> None:
    torch.manual_seed(0)
    model = models.create("resnest-fc-6", num_classes=4).double()
    x, y = torch.randn(N, 10, dtype=torch.float64), torch.randint(0, 4, (N,))
    found = read(RiskLowerBound(passes=120), moment(model, x, y, F.cross_entropy))
    v = torch.from_numpy(np.concatenate([*columns(model, x), np.ones((N, 1))], axis=1))
    heads = torch.zeros(v.shape[1], 4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([heads], max_iter=500, tolerance_grad=1e-7, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(v @ heads, y)
        loss.backward()
        return loss

    optimiser.step(closure)
    least = float(closure().detach())
    assert least <= found["reached"].value <= least + 2e-3
    assert found["bound"].value <= found["risk"].value == pytest.approx(float(F.cross_entropy(model(x), y).detach()))
    assert found["excess"].value == pytest.approx(found["risk"].value - found["reached"].value)


def test_a_wide_network_with_the_best_prediction_weights_attains_the_bound() -> None:
    """Theorem 1: M >= sum K_i and independent W_i, so that W_{L+1}, W_L can be chosen to make W_{L+1} W_i = H_i."""
    torch.manual_seed(0)
    model = models.create("resnest-fc-8", num_classes=3).double()
    model.head = nn.Linear(model.head.in_features, 3).double()
    x, y = torch.randn(N, 10, dtype=torch.float64), torch.randn(N, 3, dtype=torch.float64)
    *_, last = model.blocks
    heads, least = least_squares(columns(model, x), y.numpy())
    h, bias = torch.from_numpy(heads[:-1].T.copy()), torch.from_numpy(heads[-1])
    width = last.part("last").in_features
    with torch.no_grad():
        others = torch.cat([matrix(model.stem), *(matrix(block.part("last")) for block in list(model.blocks)[:-1])], 1)
        model.head.weight.copy_(h[:, :-width] @ torch.linalg.pinv(others))
        model.head.bias.copy_(bias)
        last.part("last").weight.copy_(torch.linalg.pinv(model.head.weight) @ h[:, -width:])
    found = read(RiskLowerBound(), moment(model, x, y, halved))
    assert found["risk"].value == pytest.approx(least / 2, rel=1e-9)
    assert abs(found["excess"].value) < 1e-9


def test_the_bound_begins_where_the_sum_does_and_says_when_it_is_none() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(N, 3, 8, 8), torch.arange(N) % 10
    found = {}
    for name in ("resnest-conv-6", "resnet-8", "preresnet-basic-8"):
        found[name] = read(RiskLowerBound(), moment(models.create(name).eval(), x, y, F.cross_entropy))
    assert found["resnest-conv-6"]["bound"].notes[-1] == f"cross-entropy, {N} samples, eval mode"
    assert found["resnet-8"]["bound"].notes[-1].endswith("from the output of block 3 on")
    assert "not affine in the features" in found["preresnet-basic-8"]["bound"].notes[-1]
    assert found["resnest-conv-6"]["bound"].value <= found["resnest-conv-6"]["risk"].value


def test_what_has_no_bound_says_so() -> None:
    few = read(RiskLowerBound(), foreign_moment(build("preactivation")))
    assert "features on 2 samples predict anything" in few["bound"].notes[-1] and few["risk"].value > 0
    assert "neither cross-entropy" in read(RiskLowerBound(), foreign_moment(build("gpt2")))["bound"].notes[-1]
    model, x = models.create("resnest-fc-6"), torch.randn(40, 10)
    assert "there are no targets" in read(RiskLowerBound(), moment(model, x))["bound"].notes[-1]
    y = torch.randint(0, 10, (40,))
    smooth = read(RiskLowerBound(), moment(model, x, y, lambda a, b: F.cross_entropy(a, b, label_smoothing=0.1)))
    assert "neither cross-entropy" in smooth["bound"].notes[-1]
    with torch.no_grad():
        next(iter(model.parameters()))[0, 0] = math.nan
    assert math.isnan(read(RiskLowerBound(), moment(model, x, y, F.cross_entropy))["bound"].value)


def test_the_loss_is_known_by_its_value() -> None:
    scores, y = torch.randn(9, 4), torch.randint(0, 4, (9,))
    found = task(float(F.cross_entropy(scores, y)), [torch.randn(9, 2), torch.randn(9, 4), scores], y)
    assert found.kind == "cross-entropy" and torch.equal(found.scores, scores.double()) and found.classes == 4
