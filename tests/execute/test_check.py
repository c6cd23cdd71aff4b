"""Checking real networks: sound ones are left alone, sick ones get one root cause, and none is changed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foreign
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.cli import main
from leadline.core.errors import UsageError
from leadline.execute.check import check


class Block(nn.Module):
    """A convolution or two with or without norm and skip, in place where that is asked for."""

    def __init__(self, *, norm: bool, skip: bool, inplace: bool, width: int = 8) -> None:
        super().__init__()
        parts = [[nn.Conv2d(width, width, 3, padding=1), *([nn.BatchNorm2d(width)] if norm else [])] for _ in range(2)]
        self.branch = nn.Sequential(*parts[0], nn.ReLU(inplace=inplace), *parts[1])
        self.relu, self.skip, self.inplace = nn.ReLU(inplace=inplace), skip, inplace

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.branch(x)
        if self.skip and self.inplace:
            out += x
        elif self.skip:
            out = out + x
        return self.relu(out)  # type: ignore[no-any-return]


def network(depth: int = 20, **how: bool) -> nn.Module:
    torch.manual_seed(0)
    blocks = [Block(**how) for _ in range(depth)]
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model.append(nn.Linear(8, 10))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
            nn.init.zeros_(module.bias)
    return model


def batch(size: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(size, 3, 8, 8, generator=generator), torch.randint(10, (size,), generator=generator)


def sgd(model: nn.Module, rate: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(("norm", "skip", "root"), [(True, False, "LL103"), (True, True, None), (False, True, "LL105")])
def test_causes_are_told_apart(norm: bool, skip: bool, root: str | None, inplace: bool) -> None:
    model = network(norm=norm, skip=skip, inplace=inplace)
    found = check(model, batch(), F.cross_entropy, sgd(model), steps=30)
    assert (found.root.id if found.root else None) == root, found
    assert (found.verdict == "healthy") == (root is None)


@pytest.mark.parametrize("inplace", [False, True])
def test_a_plain_net_without_norm_collapses(inplace: bool) -> None:
    torch.manual_seed(0)
    blocks = [Block(norm=False, skip=False, inplace=inplace) for _ in range(20)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)]
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *blocks, *head)
    found = check(model, batch(), F.cross_entropy, sgd(model), steps=50)
    assert found.root is not None and found.root.id == "LL101", found
    assert [each.id for each in found.findings if each.severity != "note"] == ["LL101"]
    assert found.verdict == "will not train", "that labels are not even is no progress"


def test_nothing_is_changed() -> None:
    model = network(4, norm=True, skip=True, inplace=True)
    optimizer = sgd(model)
    loss = F.cross_entropy(model(batch()[0]), batch()[1])
    loss.backward()
    optimizer.step()
    before, slots = foreign.state(model), repr(optimizer.state_dict())
    check(model, batch(), F.cross_entropy, optimizer, steps=5)
    assert foreign.same_state(before, foreign.state(model))
    assert repr(optimizer.state_dict()) == slots


@pytest.mark.parametrize("name", ["gpt2", "inplace_resnet"])
def test_models_of_others_are_healthy(name: str) -> None:
    foreign.declare_vision_operators()
    made = foreign.build(name)
    found = check(made.model, (made.inputs, made.targets), made.loss_fn)
    assert found.verdict == "healthy" and found.exit_code == 0, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "convnext_atto", "densenet121", "mixer"])
def test_whole_models_of_others_are_healthy(name: str) -> None:
    model = foreign.build(name).model
    inputs, targets = torch.randn(16, 3, 64, 64), torch.randint(10, (16,))
    found = check(model, (inputs, targets), F.cross_entropy, budget=200)
    assert found.verdict == "healthy" and {each.severity for each in found.findings} <= {"note"}, found


def test_a_detached_loss() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = network(4, norm=True, skip=True, inplace=False), nn.Linear(10, 10)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.body(x).detach())  # type: ignore[no-any-return]

    found = check(Cut(), batch(), F.cross_entropy, steps=20)
    assert found.root is not None and found.root.id == "LL601" and "body.0.weight" in str(found)


def test_half_precision_that_overflows() -> None:
    class Half(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return ((x * 1e6).half() / 1e6).float()

    model = network(4, norm=True, skip=True, inplace=False)
    model.insert(3, Half())  # type: ignore[operator]
    found = check(model, batch(), F.cross_entropy, steps=20)
    assert found.root is not None and found.root.id == "LL701" and found.verdict == "will not train"


def test_labels_that_do_not_follow_from_inputs() -> None:
    model = network(2, norm=True, skip=True, inplace=False)
    generator = torch.Generator().manual_seed(2)
    noise = [
        (torch.randn(16, 3, 8, 8, generator=generator), torch.randint(10, (16,), generator=generator))
        for _ in range(40)
    ]
    found = check(model, noise[0], F.cross_entropy, sgd(model, 0.05), batches=noise[1:], steps=60)
    assert found.root is not None and found.root.id == "LL603", found


@pytest.mark.parametrize(("rate", "root"), [(100.0, "LL501"), (1e-5, "LL502")])
def test_rates_that_are_far_off(rate: float, root: str) -> None:
    model = network(3, norm=True, skip=True, inplace=False)
    found = check(model, batch(), F.cross_entropy, sgd(model, rate), steps=40)
    assert found.root is not None and found.root.id == root, found


def test_the_budget_is_kept() -> None:
    model = network(10, norm=True, skip=True, inplace=False)
    assert check(model, batch(), F.cross_entropy, sgd(model, 1e-9), budget=0.5, steps=10**6).seconds < 5


def _range(model: nn.Module) -> Any:
    return model, (batch()[0], batch()[1] + 5), F.cross_entropy


ONES = torch.ones(2).long()

FAULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "labels out of range": (
        lambda: _range(network(2, norm=True, skip=True, inplace=False)),
        "labels are out of range: they go from 5 to 14",
    ),
    "wrong input": (
        lambda: (
            network(2, norm=True, skip=True, inplace=False),
            (torch.randn(2, 5, 8, 8), torch.ones(2).long()),
            F.cross_entropy,
        ),
        "channels",
    ),
    "no parameters": (lambda: (nn.ReLU(), (torch.randn(2, 5), ONES), F.cross_entropy), "no parameters"),
    "other targets": (
        lambda: (nn.Linear(5, 3), (torch.randn(2, 5), torch.ones(2, 7)), F.mse_loss),
        "size of tensor",
    ),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_checked_is_one_line(name: str) -> None:
    make, said = FAULTS[name]
    with pytest.raises(UsageError, match=said) as caught:
        check(*make(), steps=2)
    assert "\n" not in str(caught.value)


def test_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "resnet-20", "--arg", "widths=4,8,8", "--input", "3x8x8", "--batch-size", "8", "--json"]
    words += ["--optimizer", "sgd", "--lr", "0.05"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "healthy" and {finding["severity"] for finding in found["findings"]} <= {"note"}


def test_the_verb_on_a_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", "resnet-20", "--arg", "widths=4,8,8", "--arg", "in_channels=1", "--data", "digits"]
    assert main([*train, "--steps", "30", "--batch-size", "32", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    folder = next(tmp_path.iterdir())
    assert main(["check", str(folder)]) in (0, 1)
    said = capsys.readouterr().out
    assert said.startswith("verdict: ") and "a run that is done" in said
    (folder / "done.json").unlink()
    with (folder / "readings.jsonl").open("a") as handle:
        handle.write('{"step":30,"probe":"loss","name":"train/loss","value":"nan"}\n{"step":31,"pro')
    assert main(["check", str(folder)]) == 1
    assert "will not train" in capsys.readouterr().out


def test_the_verb_says_what_is_wrong_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "foreign:no_such"]) == 2
    assert main(["check", "foreign:mlp"]) == 2
    assert main(["check", "resnet-20", "--input", "3xx8"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3 and "no_such" in said[0] and "Foreign" in said[1] and "3xx8" in said[2]


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "ll101"]) == 0
    assert "collinear" in capsys.readouterr().out
    assert main(["explain", "LL999"]) == 2
