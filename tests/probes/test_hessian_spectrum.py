"""Against all eigenvalues of the Hessian that torch.autograd.functional computes."""

import math

import pytest
import torch
from foreign import build
from probes.moment import double, foreign_moment, moment, read
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from leadline.probes import Moment
from leadline.probes.hessian_spectrum import HessianSpectrum


def eigenvalues(at: Moment, prefix: str = "") -> Tensor:
    """Of the Hessian with respect to the parameters whose names begin so."""
    named = {name: p for name, p in at.model.named_parameters() if name.startswith(prefix) and p.requires_grad}

    def loss(flat: Tensor) -> Tensor:
        parts = torch.split(flat, [p.numel() for p in named.values()])
        chosen = {name: part.view_as(p) for (name, p), part in zip(named.items(), parts, strict=True)}
        return at.loss_fn(functional_call(at.model, chosen, at.inputs.args), at.inputs.targets)

    flat = torch.cat([p.detach().flatten() for p in named.values()])
    return torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, flat))


class Temperature(nn.Module):
    """A trained number without dimensions, as contrastive models have."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * x


def small() -> Moment:
    torch.manual_seed(0)
    layers = nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 3)
    model = nn.Sequential(*layers, Temperature()).double()
    return moment(model, torch.randn(20, 4, dtype=torch.float64), torch.arange(20) % 3, F.cross_entropy)


@pytest.mark.parametrize("block", ["", "2"])
def test_all_eigenvalues(block: str) -> None:
    at = small()
    found = {name: reading.value for name, reading in read(HessianSpectrum(block=block), at).items()}
    values = eigenvalues(at, block)
    sizes = values.abs()
    assert found["top"] == pytest.approx(float(values[-1]), rel=1e-9)
    assert found["bottom"] == pytest.approx(float(values[0]), rel=1e-9)
    assert found["trace"] == pytest.approx(float(values.sum()), rel=1e-9)
    assert found["percentile10"] == pytest.approx(float(torch.quantile(sizes, 0.1)), rel=1e-5)
    assert found["ratio10"] == pytest.approx(float(sizes.max() / torch.quantile(sizes, 0.1)), rel=1e-5)
    assert found["index"] == pytest.approx(float((values < -1e-12).double().mean()))
    shares = torch.histc(values, 16) / len(values)
    assert [found[f"histogram/{k:02}"] for k in range(16)] == pytest.approx(shares.tolist())


def test_sampled_ends_and_bounds_hold_the_true_ones() -> None:
    at = small()
    values = eigenvalues(at)
    found = read(HessianSpectrum(dense=1, steps=40, probes=4), at)
    assert found["top"].value == pytest.approx(float(values[-1]), rel=1e-3)
    assert found["bottom"].value == pytest.approx(float(values[0]), abs=2e-3 * float(values[-1]))
    assert found["percentile10"].value >= float(torch.quantile(values.abs(), 0.1)) * 0.5
    index = float((values < -1e-9 * values[-1]).double().mean())
    assert found["index/low"].value - 0.15 <= index <= found["index/high"].value + 0.15
    assert sum(found[f"histogram/{k:02}"].value for k in range(16)) == pytest.approx(1)
    assert "a lower bound" in found["ratio10"].notes[-1] and "Lanczos products, 74 weights" in found["top"].notes[-1]


@pytest.mark.parametrize("name", ["lstm", "gpt2", "preactivation"])
def test_the_ends_of_foreign_models(name: str) -> None:
    at = foreign_moment(double(build(name)))
    found = read(HessianSpectrum(dense=0, steps=30, probes=1), at)
    again = read(HessianSpectrum(dense=0, steps=60, probes=1, seed=1), at)
    for end in ("top", "bottom"):
        assert found[end].value == pytest.approx(again[end].value, rel=5e-3)
    assert "train mode, float64" in found["top"].notes[-1]


def test_a_linear_network_with_skips_over_two_layers_keeps_its_condition_at_any_depth() -> None:
    """Li et al., Theorem 2 and Fig. 4: near zero |lambda|_max / |lambda|_(0.1) does not depend on depth."""

    class Unit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = (nn.Linear(4, 4, bias=False) for _ in range(2))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.two(self.one(x))

    torch.manual_seed(0)
    x = torch.linalg.qr(torch.randn(50, 4, dtype=torch.float64)).Q * math.sqrt(50)
    y = x @ torch.randn(4, 4, dtype=torch.float64)
    ratios = []
    for depth in (1, 3, 6):
        model = nn.Sequential(*(Unit() for _ in range(depth))).double()
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=1e-3)
        found = read(HessianSpectrum(), moment(model, x, y, F.mse_loss))
        ratios.append(found["ratio10"].value)
        assert found["index"].value == pytest.approx(0.5)
    assert ratios == pytest.approx([ratios[0]] * 3, rel=0.1)


def test_what_has_no_hessian_says_so() -> None:
    at = small()
    assert "unknown block 'nine'" in read(HessianSpectrum(block="nine"), at)["top"].notes[-1]
    assert read(HessianSpectrum(), moment(at.model, *at.inputs.args))["top"].notes[-1].startswith("there is no loss")
    frozen = small()
    frozen.model.requires_grad_(False)
    assert "no trained parameters" in read(HessianSpectrum(), frozen)["top"].notes[-1]
    half = moment(
        nn.Sequential(nn.Linear(3, 3).bfloat16()), torch.ones(2, 3).bfloat16(), torch.tensor([0, 1]), F.cross_entropy
    )
    assert "the weights are torch.bfloat16" in read(HessianSpectrum(), half)["top"].notes[-1]
    flat = moment(nn.Sequential(nn.Linear(2, 1)), torch.zeros(3, 2), torch.zeros(3, 1), lambda a, b: (0 * a).sum())
    assert "zero matrix" in read(HessianSpectrum(), flat)["top"].notes[-1]
    assert math.isnan(read(HessianSpectrum(dense=0), flat)["ratio10"].value)
    with torch.no_grad():
        at.model[0].weight[0, 0] = math.nan
    for probe in (HessianSpectrum(), HessianSpectrum(dense=0)):
        assert "not finite" in read(probe, at)["top"].notes[-1]


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.linalg.memory.free_bytes", lambda device=None: 1000)
    for probe in (HessianSpectrum(), HessianSpectrum(dense=0)):
        note = read(probe, small())["top"].notes[-1]
        assert "GB are free" in note
