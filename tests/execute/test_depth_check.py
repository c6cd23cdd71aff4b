"""One recipe at several depths: plain networks explode or die with depth, residual ones do not, whoever wrote them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.cli import main
from leadline.core.errors import UsageError
from leadline.execute.depth_check import depth_check


class Row(nn.Sequential):
    """Layers of 16 units in a row, or with a skip around each; written as somebody would."""

    def __init__(self, depth: int, *, skip: bool, gain: float = 1.0) -> None:
        super().__init__(nn.Linear(12, 16), *(Step(skip=skip, gain=gain) for _ in range(depth)), nn.Linear(16, 4))


class Step(nn.Module):
    def __init__(self, *, skip: bool, gain: float) -> None:
        super().__init__()
        self.norm, self.layer, self.skip = nn.LayerNorm(16), nn.Linear(16, 16), skip
        with torch.no_grad():
            self.layer.weight.mul_(gain)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = F.relu(self.layer(self.norm(x) if self.skip else x))
        return x + out if self.skip else out


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(24, 12, generator=generator), torch.randint(4, (24,), generator=generator)


def test_signal_dies_in_plain_layers_and_not_beside_skips() -> None:
    def checked(skip: bool, depths: list[int]) -> Any:
        return depth_check(lambda depth: Row(depth, skip=skip), depths, batch(), F.cross_entropy, repeats=2, steps=25)

    plain = checked(False, [2, 6, 12])
    assert plain.trends["gradient"].verdict == "exploding"
    assert plain.rungs[-1].verdict == "will not train" and plain.prediction.blocks < 14 and plain.exit_code == 1
    with_skips = checked(True, [2, 6, 12])
    assert "exploding" not in {one.verdict for one in with_skips.trends.values()}, with_skips
    assert with_skips.prediction.blocks > 14 and with_skips.exit_code == 0


def test_the_slope_is_that_of_the_layers() -> None:
    """x_{l+1} = g x_l multiplies the signal by g with every block: log10 g decades each."""

    class Gain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(16, 16, bias=False)
            self.layer.weight.data = 0.5 * torch.eye(16)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x)

    def factory(depth: int) -> nn.Module:
        return nn.Sequential(nn.Linear(12, 16), *(Gain() for _ in range(depth)), nn.Linear(16, 4))

    found = depth_check(factory, [3, 5, 9], batch(), F.cross_entropy, repeats=2, steps=2)
    for name in ("signal", "gradient"):
        assert found.trends[name].slope.value == pytest.approx(torch.log10(torch.tensor(2.0)).item(), rel=1e-3), name


def test_nothing_outside_is_moved() -> None:
    before = torch.get_rng_state()
    depth_check(lambda depth: Row(depth, skip=True), [1, 2, 3], batch(), F.cross_entropy, repeats=1, steps=2)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("depths", "options", "said"),
    [([1, 2], {}, "at least three"), ([1, 2, 3], {"repeats": 0}, "repeats=0"), ([1, 2, 3], {"budget": 0}, "budget=0")],
)
def test_what_cannot_be_meant(depths: list[int], options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        depth_check(lambda depth: Row(depth, skip=True), depths, batch(), F.cross_entropy, **options)


WORDS = [
    "depth-check",
    "preresnet-basic",
    "--input",
    "3x8x8",
    "--arg",
    "widths=4,4,8",
    "--repeats",
    "1",
    "--steps",
    "2",
]


def test_the_verb_keeps_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "kept"
    main([*WORDS, "--depths", "8,14,20", "-o", str(out), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert [rung["blocks"] for rung in said["rungs"]] == [3, 6, 9]
    assert json.loads((out / "depths.json").read_text())["trends"] == said["trends"]
    assert {path.name for path in out.iterdir()} == {"depth-8", "depth-14", "depth-20", "depths.json", "report.html"}
    assert (out / "depth-14" / "diagnosis.json").exists()


def test_a_factory_with_a_depth_of_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["depth-check", "foreign:FunctionalResNet", "--depths", "2,4,6", "--input", "3x8x8", "--steps", "1"]
    assert main([*words, "--repeats", "1", "--depth-arg", "dpeth"]) == 2
    assert "dpeth" in capsys.readouterr().err
    main([*words, "--repeats", "1", "--arg", "width=4"])
    assert capsys.readouterr().out.startswith("foreign:FunctionalResNet at depth 2, 4, 6")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--depths", "8,14"], "--depths '8,14': expected three or more"),
        (["--depths", "8,14,deep"], "expected three or more numbers"),
        (["--depths", "8,14,15"], "no preresnet-basic-15"),
    ],
)
def test_mistakes_are_one_line_before_anything_is_kept(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, *words, "-o", str(tmp_path / "kept")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
