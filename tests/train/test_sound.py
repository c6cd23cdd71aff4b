"""Sounding: right numbers, a model left bit for bit, and a word for everything that cannot be measured."""

import math
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from foreign import build, same_state, state
from torch import Tensor, nn
from torch.nn import functional as F

import leadline as ll
from leadline.core.errors import UnreadableError, UsageError
from leadline.core.when import AtEnd
from leadline.probes import Moment, Reading
from leadline.train.presets import choose, name_of, spell, word

OURS = (
    "gradient_norm_ratio",
    "weight_norm",
    "gradient_range",
    "weight_range",
    "activation_range",
    "update_ratio",
    "generalisation_gap",
)


def labelled(profile: ll.Profile) -> ll.Profile:
    """Checked to hold no nan without a word."""
    for row in profile.table().rows():
        assert not math.isnan(row["value"]) or row["note"], row
    return profile


@pytest.mark.parametrize(
    "name", ["inplace_resnet", "functional_resnet", "unet", "lstm", "twice", "two_heads", "volumes", "mlp"]
)
def test_any_model_is_measured_and_left_as_it_was(name: str) -> None:
    foreign, twin = build(name), build(name)
    before = state(foreign.model)
    profile = labelled(ll.sound(foreign.model, (foreign.inputs, foreign.targets), foreign.loss_fn, OURS))
    assert same_state(before, state(foreign.model))
    assert profile.names("gradient_norm_ratio")
    measured = np.isfinite(profile["gradient_norm_ratio/ratio"])
    assert measured[1:].all()
    torch.manual_seed(3)
    ours = foreign.loss()
    torch.manual_seed(3)
    assert torch.equal(ours, twin.loss())
    assert len(str(profile).splitlines()) > 10


def test_the_same_numbers_as_by_hand() -> None:
    model = ll.models.create("resnet-20", widths=[4, 4, 8]).double()
    x, y = torch.randn(6, 3, 8, 8, dtype=torch.float64), torch.arange(6)
    profile = ll.sound(model, (x, y), F.cross_entropy, OURS)
    boundaries = [model.stem(x)]
    for block in model.blocks:
        boundaries.append(block(boundaries[-1]))
    loss = F.cross_entropy(model.head(boundaries[-1]), y)
    gradients = torch.autograd.grad(loss, boundaries, retain_graph=True)
    norms = np.array([float(gradient.norm()) for gradient in gradients])
    np.testing.assert_allclose(profile["gradient_norm_ratio/ratio"], norms[1:] / norms[:-1], rtol=1e-10)
    np.testing.assert_allclose(
        profile["activation_range/max"], [float(boundary.detach().max()) for boundary in boundaries], rtol=1e-12
    )
    loss.backward()
    lows = [float(p.grad.min()) for p in model.parameters() if p.ndim > 1]
    np.testing.assert_allclose(profile["gradient_range/min"], lows, rtol=1e-10)
    assert profile["loss/train/loss"].tolist() == [loss.item()]


def test_a_profile_is_a_table_a_frame_a_file_and_a_figure(tmp_path: Path) -> None:
    model = ll.models.create("resnet-20", widths=[4, 4, 8])
    profile = ll.sound(model, (torch.randn(6, 3, 8, 8), torch.arange(6)), F.cross_entropy, OURS)
    frame = profile.frame()
    assert list(frame.columns) == ["step", "block", "name", "metric", "value", "note"]
    ratios = frame[frame.metric == "gradient_norm_ratio/ratio"]
    assert ratios.name.tolist() == [f"blocks.stage{s}_block{b}" for s in (1, 2, 3) for b in (1, 2, 3)]
    assert profile.transitions() == [k in (3, 6) for k in range(9)]
    profile.to_parquet(tmp_path / "profile.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "profile.parquet"), frame, check_dtype=False)
    with pytest.raises(UnreadableError, match=r"cannot write .*no/profile\.parquet"):
        profile.to_parquet(tmp_path / "no" / "profile.parquet")
    text = str(profile)
    assert "Chain: 9 blocks, train mode, float32" in text and "histogram/" not in text
    assert "not measured: update_ratio/ratio, because no step was made" in text
    figure = profile.plot()
    titles = {panel.get_title(loc="left") for panel in figure.axes}
    assert {"gradient_norm_ratio", "activation_range"} <= titles
    with pytest.raises(UsageError, match="unknown metric 'gradient_norm_ratio/rato'; did you mean"):
        profile["gradient_norm_ratio/rato"]


def test_the_mode_is_the_models_own() -> None:
    model = build("inplace_resnet").model
    batch = torch.randn(8, 3, 16, 16), torch.arange(8)
    train = ll.sound(model, batch, F.cross_entropy, "light")
    evaluation = ll.sound(model.eval(), batch, F.cross_entropy, "light")
    assert "train mode" in str(train) and "eval mode" in str(evaluation)
    assert not np.allclose(train["gradient_norm_ratio/ratio"], evaluation["gradient_norm_ratio/ratio"], rtol=1e-3)


Batch = Any


def of(values: float, *, size: int = 4) -> tuple[Tensor, Tensor]:
    return torch.full((size, 3, 16, 16), values), torch.arange(size)


@pytest.mark.parametrize(
    ("batch", "half"),
    [(of(math.nan), False), (of(math.inf), False), (of(0.0), False), (of(1.0), True)],
    ids=["nan", "inf", "zero", "bf16"],
)
def test_bad_numbers_are_labelled(batch: Batch, half: bool) -> None:
    model = build("inplace_resnet").model
    if half:
        model, batch = model.bfloat16(), (batch[0].bfloat16(), batch[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labelled(ll.sound(model, batch, lambda out, y: F.cross_entropy(out.float(), y), OURS))


def test_few_samples() -> None:
    model = build("inplace_resnet").model.eval()
    one = labelled(ll.sound(model, of(1.0, size=1), F.cross_entropy, OURS))
    assert np.isfinite(one["gradient_norm_ratio/ratio"]).all()
    none = labelled(ll.sound(model, of(1.0, size=0), F.cross_entropy, OURS))
    assert np.isnan(none["gradient_norm_ratio/ratio"]).all()
    with pytest.raises(UsageError, match=r"failed on this batch: ValueError: Expected more than 1 value per channel"):
        ll.sound(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), torch.ones(1, 2), lambda out, _: out.sum(), OURS)


def test_models_with_little_inside() -> None:
    empty = labelled(ll.sound(nn.Flatten(), torch.randn(2, 3), lambda out, _: out.sum(), OURS))
    assert all(np.isnan(empty[metric]).all() for metric in empty.metrics if not metric.startswith("loss"))
    assert "because the model has no parameters" in str(empty)
    frozen = build("mlp")
    frozen.model.requires_grad_(False)
    profile = labelled(ll.sound(frozen.model, (frozen.inputs, frozen.targets), frozen.loss_fn, OURS))
    assert np.isfinite(profile["weight_norm/norm"]).all() and np.isnan(profile["gradient_range/min"]).all()


@pytest.mark.parametrize(
    ("loss_fn", "said"),
    [
        (lambda out, _: out, r"must return one number as a tensor, got a tensor of shape \(5, 10\)"),
        (lambda out, _: 1.0, "must return one number as a tensor, got float"),
        (lambda out, y: F.cross_entropy(out, y[:2]), "the model or its loss failed on this batch: ValueError"),
    ],
)
def test_a_loss_that_is_none(loss_fn: Any, said: str) -> None:
    foreign = build("mlp")
    before = state(foreign.model)
    with pytest.raises(UsageError, match=said) as caught:
        ll.sound(foreign.model, (foreign.inputs, foreign.targets), loss_fn, OURS)
    assert "\n" not in str(caught.value) and same_state(before, state(foreign.model))


class Broken:
    when = AtEnd()
    axis = "layer"

    def taps(self, anatomy: Any) -> tuple[()]:
        return ()

    def read(self, at: Moment) -> Any:
        yield Reading("first", 1.0)
        raise ArithmeticError("no luck\ntoday")


def test_a_probe_that_fails_says_so_and_is_read_whatever_its_schedule() -> None:
    foreign = build("mlp")
    profile = ll.sound(foreign.model, (foreign.inputs, foreign.targets), foreign.loss_fn, ["weight_norm", Broken()])
    assert profile.notes("broken/failed") == {-1: "it failed: ArithmeticError: no luck"}
    assert np.isfinite(profile["weight_norm/norm"]).all()


def test_words_for_probes() -> None:
    light = choose("light")
    assert spell(light) == ("gradient_norm_ratio@every:1", "weight_norm@every:1")
    assert spell(choose(spell(light))) == spell(light)
    assert spell(choose(["weight_norm@log:3", "weight_norm@once:5"])) == ("weight_norm@once:5",)
    assert spell(choose("standard", every=7))[-1].endswith("@every:7")
    assert all(name_of(probe) == name for name, probe in choose(OURS).items())
    assert word(AtEnd()) == "end"
    bound = spell(choose("risk_lower_bound(samples=64; ridge=1)@end"))
    assert bound == ("risk_lower_bound(samples=64; ridge=1.0)@end",) == spell(choose(bound))
    for wrong, said in {
        "risk_lower_bound(sample=64)@end": "did you mean 'samples'",
        "risk_lower_bound(samples=many)@end": "expected int",
        "lite": "did you mean 'light'",
        "weight_norm@evry:3": "schedule",
        "grad_ratio": "norm_ratio",
    }.items():
        with pytest.raises(UsageError, match=said):
            choose(wrong)


def test_the_package_needs_no_torch_to_be_imported() -> None:
    code = (
        "import sys, leadline; assert 'torch' not in sys.modules; assert callable(leadline.sound); print(dir(leadline))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(name in out for name in ("Profile", "Recorder", "anatomy", "models", "sound"))
    with pytest.raises(AttributeError, match="no attribute 'sonud'"):
        ll.sonud  # noqa: B018
