"""The contract of every probe in the folder, on models that other people wrote and on data that nobody wants.

A probe measures or says why not, never fails, never yields an unexplained nan, and leaves the model bit for bit:
weights, buffers, gradients, modes, hooks and random states, up to the loss of the next training step.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any

import pytest
import torch
from foreign import MODELS, Foreign, PreActivation, build, declare_vision_operators, same_state, state
from probes.moment import foreign_moment, read
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from leadline.core import plugins
from leadline.probes import Foresighted, Moment, Probe, Splits
from leadline.taps.anatomy import Anatomy
from leadline.taps.inputs import Inputs
from leadline.taps.tape import Heard, Tap
from leadline.train.sound import sound

PACKAGE = "leadline.probes"
NAMES = plugins.names(PACKAGE)
CHEAP: dict[str, dict[str, Any]] = {
    "weight_condition": {"largest_side": 200},
    "operator_condition": {"largest_side": 200, "operations": 3e8},
    "hessian_spectrum": {"dense": 50, "steps": 3, "probes": 1},
}
"""Arguments that keep a probe small; the numbers are held against slow computations elsewhere."""


def probe_of(name: str) -> Probe:
    probe: Probe = plugins.load(PACKAGE, name, kind="probe")(**CHEAP.get(name, {}))
    return probe


def tiny(name: str) -> Foreign:
    """The large ones at a width and depth at which everything can be measured in a second."""
    torch.manual_seed(1)
    declare_vision_operators()
    import timm
    import torchvision.models as vision

    make: dict[str, Callable[[], nn.Module]] = {
        "resnet18": lambda: vision.ResNet(vision.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10),
        "resnext50": lambda: vision.ResNet(
            vision.resnet.Bottleneck, [1, 1, 1, 1], num_classes=10, groups=32, width_per_group=4
        ),
        "vit_b_16": lambda: vision.VisionTransformer(32, 16, 3, 2, 24, 48, num_classes=10),
        "resnetv2_50": lambda: timm.create_model(
            "resnetv2_50", num_classes=10, layers=(1, 2, 1, 1), channels=(16, 32, 48, 64), stem_chs=8
        ),
        "convnext_atto": lambda: timm.create_model(
            "convnext_atto", num_classes=10, depths=(1, 1, 2, 1), dims=(8, 16, 24, 32)
        ),
    }
    return Foreign(make[name](), torch.randn(2, 3, 32, 32), torch.arange(2), F.cross_entropy)


LARGE = ["resnet18", "resnext50", "vit_b_16", "resnetv2_50", "convnext_atto"]
SMALL = ["gpt2", "hf_vit", "inplace_resnet", "functional_resnet", "preactivation", "unet", "lstm", "twice", "two_heads"]
SMALL += ["volumes", "mlp", "bert", "t5", "llama"]


@dataclass(frozen=True)
class Chorus:
    """What all probes want to hear in one pass."""

    probes: tuple[Probe, ...]

    def taps(self, anatomy: Anatomy) -> list[Tap]:
        return [tap for probe in self.probes for tap in probe.taps(anatomy)]


PROBES = {name: probe_of(name) for name in NAMES}


def listened(foreign: Foreign) -> Moment:
    at = foreign_moment(foreign, Chorus(tuple(PROBES.values())))
    if not isinstance(foreign.inputs, Tensor):
        return at
    batch = (foreign.inputs, foreign.targets)
    return replace(at, splits=Splits(train=[batch], test=[batch, batch]))


def measured(at: Moment) -> dict[str, int]:
    """How many numbers each probe finds in a model that is, bit for bit, the same afterwards."""
    found, before = {}, bits(state(at.model))
    for name, probe in PROBES.items():
        seen = probe.before(at.model) if isinstance(probe, Foresighted) else None
        readings = read(probe, replace(at, before=seen))
        assert same_state(bits(state(at.model)), before), f"{name} left traces"
        values = [[one.value] if isinstance(one.value, float | int) else one.value for one in readings.values()]
        found[name] = sum(math.isfinite(value) for several in values for value in several)
    return found


def bits(value: Any) -> Any:
    """The same with tensors as bytes, among which a nan is equal to itself."""
    if isinstance(value, Tensor):
        return value.detach().reshape(-1).view(torch.uint8)
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return type(value)(map(bits, value)) if isinstance(value, list | tuple) else value


def losses(foreign: Foreign) -> list[float]:
    """What the next three training steps see, dropout included."""
    optimizer = torch.optim.SGD(foreign.model.parameters(), lr=0.01, momentum=0.9)
    found = []
    for _ in range(3):
        loss = foreign.loss()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(float(loss.detach()))
    return found


@pytest.mark.parametrize("name", [*LARGE, *SMALL])
def test_foreign_models(name: str) -> None:
    foreign = tiny(name) if name in LARGE else build(name)
    untouched = copy.deepcopy(foreign)
    at = listened(foreign)
    for one in (foreign, untouched):  # gradients that must still be there afterwards
        torch.manual_seed(5)
        one.loss().backward()
    random = torch.get_rng_state()
    found = measured(at)
    seen = losses(foreign)
    torch.set_rng_state(random)
    assert seen == losses(untouched)
    assert {probe for probe, count in found.items() if count} >= {"weight_condition", "operator_condition"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MODELS if name not in SMALL])
def test_foreign_models_at_full_size(name: str) -> None:
    measured(listened(build(name)))


@pytest.mark.parametrize("name", ["inplace_resnet", "gpt2", "two_heads"])
def test_all_of_them_at_once(name: str) -> None:
    foreign = build(name)
    untouched, before = copy.deepcopy(foreign), state(foreign.model)
    inputs = foreign.inputs
    profile = sound(foreign.model, (inputs, foreign.targets), foreign.loss_fn, probes=list(PROBES.values()))
    assert same_state(state(foreign.model), before)
    rows = profile.readings
    assert set(rows["probe"].tolist()) == {"loss", *NAMES}
    assert "failed" not in rows["name"].tolist()
    assert all(note for value, note in zip(rows["value"], rows["note"], strict=True) if value != value)
    random = torch.get_rng_state()
    expected = losses(untouched)
    torch.set_rng_state(random)
    assert losses(foreign) == expected


class Checkpointed(nn.Module):
    """A residual network that forgets the insides of its blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.reentrant: bool | None = None
        self.stem, self.fc = nn.Linear(5, 6), nn.Linear(6, 4)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            again = self.reentrant
            x = x + (block(x) if again is None else checkpoint(block, x, use_reentrant=again))
        return self.fc(x)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_changes_no_number(reentrant: bool) -> None:
    torch.manual_seed(0)
    foreign = Foreign(Checkpointed(), torch.randn(60, 5), torch.arange(60) % 4, F.cross_entropy)
    plain = listened(foreign)
    expected = {name: list(map(repr, probe.read(plain))) for name, probe in PROBES.items() if name in OWN}
    foreign.model.reentrant = reentrant
    at = listened(foreign)
    assert {name: list(map(repr, PROBES[name].read(at))) for name in expected} == expected
    measured(at)


OWN = {"norm_bound", "hessian_spectrum", "feature_predictability", "risk_lower_bound", "residual_probe", "collinearity"}
"""Probes that run passes of their own."""


@pytest.mark.parametrize("name", ["norm_bound", "hessian_spectrum", "feature_predictability", "risk_lower_bound"])
def test_a_graph_that_does_not_fit_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = listened(build("preactivation"))
    monkeypatch.setattr("leadline.linalg.memory.free_bytes", lambda device=None: 1000)
    notes = [note for reading in read(PROBES[name], at).values() for note in reading.notes.values()]
    assert any("the graph of a pass of 2 samples needs" in note for note in notes)


# -- data that nobody wants ------------------------------------------------------------------------------------------


def residual() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1), PreActivation(8, 8), PreActivation(8, 16), nn.Flatten(), nn.Linear(256, 10)
    )


def spoilt(change: Callable[[Tensor], Any]) -> nn.Module:
    model = residual()
    with torch.no_grad():
        for name in ("1.conv1.weight", "2.conv2.weight", "4.weight"):
            change(model.get_parameter(name))
    return model


def low_rank(weight: Tensor) -> None:
    weight.flatten(1)[1::2] = weight.flatten(1)[::2]


IMAGES, LABELS = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(4)


class Complex(nn.Module):
    """Complex in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(192, 10, dtype=torch.complex64)
        self.two = nn.Linear(10, 10, dtype=torch.complex64)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.one(x.flatten(1).to(torch.complex64))).abs()


STRANGE: dict[str, Callable[[], tuple[nn.Module, Tensor, Tensor]]] = {
    "nan": lambda: (spoilt(lambda weight: weight.view(-1)[3].fill_(math.nan)), IMAGES, LABELS),
    "inf": lambda: (spoilt(lambda weight: weight.view(-1)[3].fill_(math.inf)), IMAGES, LABELS),
    "zero": lambda: (spoilt(lambda weight: weight.zero_()), IMAGES, LABELS),
    "huge": lambda: (spoilt(lambda weight: weight.mul_(1e30)), IMAGES, LABELS),
    "low rank": lambda: (spoilt(low_rank), IMAGES, LABELS),
    "one by one": lambda: (nn.Sequential(nn.Linear(1, 1), nn.Tanh(), nn.Linear(1, 1)), IMAGES[:, 0, 0, :1], LABELS * 0),
    "bf16": lambda: (residual().bfloat16(), IMAGES.bfloat16(), LABELS),
    "float64": lambda: (residual().double(), IMAGES.double(), LABELS),
    "batch of one": lambda: (residual(), IMAGES[:1], LABELS[:1]),
    "nan in the data": lambda: (residual(), IMAGES.masked_fill(IMAGES > 1, math.nan), LABELS),
    "equal samples": lambda: (residual(), IMAGES[:1].expand(4, -1, -1, -1), LABELS),
    "frozen": lambda: (residual().requires_grad_(False), IMAGES, LABELS),
    "evaluation mode": lambda: (residual().eval(), IMAGES, LABELS),
    "no parameters": lambda: (nn.Sequential(nn.ReLU(), nn.Flatten()), IMAGES, LABELS),
    "complex": lambda: (Complex(), IMAGES, LABELS),
    "one layer": lambda: (nn.Sequential(nn.Flatten(), nn.Linear(192, 10)), IMAGES, LABELS),
    "one convolution on one pixel": lambda: (
        nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten()),
        IMAGES[..., :1, :1],
        LABELS,
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_models_and_data(name: str) -> None:
    model, inputs, labels = STRANGE[name]()
    measured(listened(Foreign(model, inputs, labels, F.cross_entropy)))


def test_an_empty_batch() -> None:
    model = residual()
    at = listened(Foreign(model, IMAGES, LABELS, F.cross_entropy))
    empty = Inputs((IMAGES[:0],), targets=LABELS[:0])
    found = measured(replace(at, inputs=empty, loss=math.nan, heard=Heard({}, {}), splits=Splits([], [])))
    assert found["weight_condition"]
    assert not any(found[name] for name in ("collinearity", "hidden_condition", "norm_bound"))


def test_a_model_or_a_loss_that_fails_is_named() -> None:
    at = listened(Foreign(residual(), IMAGES, LABELS, F.cross_entropy))
    wrong = replace(at, inputs=Inputs((IMAGES[:, :2],), targets=LABELS), splits=None)
    for name in ("hidden_condition", "hessian_spectrum", "residual_probe", "feature_predictability"):
        notes = [note for reading in read(PROBES[name], wrong).values() for note in reading.notes.values()]
        assert any("the model failed on this batch: RuntimeError: " in note for note in notes), name
    measured(wrong)
    without = replace(at, loss_fn=None, inputs=Inputs((IMAGES,)))
    measured(without)


# -- cards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_card_says_what_is_asked_of_it(name: str) -> None:
    card = plugins.card(PACKAGE, name)
    title = card.partition("\n")[0]
    assert 20 < len(title) <= 118 and title.endswith(".")
    for part in ("Reference:", "Normal:", "Cost:"):
        assert part in card, f"the card of {name} has no {part}"


@pytest.mark.parametrize("name", NAMES)
def test_a_probe_is_frozen_data(name: str) -> None:
    probe = PROBES[name]
    assert is_dataclass(probe) and probe == replace(probe) and hash(probe) == hash(replace(probe))  # type: ignore[type-var]
    assert probe.axis in ("block", "boundary", "layer")
    assert probe.when.due(0, last=100) in (True, False)
