"""Procrustes in training loops as people write them: schedules, checkpoints, failures, precision, processes."""

import copy
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.optim import Optimizer

from leadline import models
from leadline.core.errors import UsageError
from leadline.projections import Procrustes
from leadline.projections.shape_changes import Conv


class Net(nn.Module):
    """A 3x3 stem, a 1x1 transition with stride, a 3x3 one, and something after them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, padding=1, bias=False)
        self.down = nn.Conv2d(12, 24, 1, stride=2, bias=False)
        self.wide = nn.Conv2d(24, 40, 3, padding=1)
        self.head = nn.Linear(40, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.wide(F.relu(self.down(self.stem(x)))).mean((2, 3)))
        return out


def sgd(net: nn.Module) -> Optimizer:
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)


def train(net: nn.Module, optimizer: Optimizer, steps: int, *, seed: int = 7) -> None:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x, y = torch.randn(8, 3, 8, 8, generator=generator), torch.randint(5, (8,), generator=generator)
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()


def kernels(procrustes: Procrustes) -> list[Tensor]:
    return [site.kernel.detach().clone() for site in procrustes.sites]


@pytest.mark.parametrize("momentum", ["keep", "tangent"])
@pytest.mark.parametrize("make", [sgd, lambda net: torch.optim.AdamW(net.parameters(), lr=1e-2)])
def test_after_every_step_every_kernel_is_on_its_set(momentum: str, make: Any) -> None:
    net = Net()
    optimizer = make(net)
    procrustes = Procrustes(net, momentum=momentum).attach(optimizer)
    assert [site.name for site in procrustes.sites] == ["stem", "down", "wide"]
    for step in range(8):
        train(net, optimizer, 1, seed=step)
        found = procrustes.deviations()
        assert found["down"] < 1e-6
        assert found["stem"] < 5e-3
        assert found["wide"] < 0.1


def test_it_learns() -> None:
    net = Net()
    optimizer = sgd(net)
    Procrustes(net).attach(optimizer)
    x, y = torch.randn(16, 3, 8, 8), torch.arange(16) % 5
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_schedules() -> None:
    net = Net()
    every_third = Procrustes(net, every=3)
    assert [every_third.step() for _ in range(7)] == [False, False, True, False, False, True, False]
    one, same, other = (Procrustes(net, every=2, schedule="random", seed=seed) for seed in (1, 1, 2))
    drawn = [one.step() for _ in range(200)]
    assert drawn == [same.step() for _ in range(200)]
    assert drawn != [other.step() for _ in range(200)]
    assert 70 < sum(drawn) < 130


def test_a_projection_says_what_it_did_and_doing_it_again_moves_nothing_but_rounding() -> None:
    net = Net()
    first = Procrustes(net).project()
    assert all(one.moved > 0.1 and one.before > 0.1 and one.after < 2e-3 for one in first)
    saved = io.BytesIO()
    torch.save(net.state_dict(), saved)
    saved.seek(0)
    loaded = Net()
    loaded.load_state_dict(torch.load(saved))
    again = Procrustes(loaded).project()
    assert all(one.moved < 1e-6 for one in again)
    assert [one.moved for one in again if one.name != "down"] == [0.0, 0.0]


def test_rank_deficient_kernels_are_reported() -> None:
    conv = nn.Conv2d(4, 8, 1)
    with torch.no_grad():
        conv.weight[:, 2] = 0
    (report,) = Procrustes([conv]).project()
    assert "rank-deficient before, 1" in report.note
    assert report.after < 1e-6


@pytest.mark.parametrize("order", ["state first", "attach first"])
@pytest.mark.parametrize("momentum", ["keep", "tangent"])
def test_resuming_from_a_checkpoint_is_bit_exact(order: str, momentum: str) -> None:
    def build() -> tuple[Net, Optimizer, Procrustes]:
        torch.manual_seed(3)
        net = Net()
        return net, sgd(net), Procrustes(net, every=2, schedule="random", momentum=momentum)

    net, optimizer, procrustes = build()
    procrustes.attach(optimizer)
    train(net, optimizer, 5)
    saved = io.BytesIO()
    torch.save([part.state_dict() for part in (net, optimizer, procrustes)], saved)
    train(net, optimizer, 6, seed=11)

    saved.seek(0)
    resumed, resumed_optimizer, resumed_procrustes = build()
    if order == "attach first":
        resumed_procrustes.attach(resumed_optimizer)
    for part, state in zip((resumed, resumed_optimizer, resumed_procrustes), torch.load(saved), strict=True):
        part.load_state_dict(state)
    if order == "state first":
        resumed_procrustes.attach(resumed_optimizer)
    train(resumed, resumed_optimizer, 6, seed=11)
    for name, value in net.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert resumed_procrustes.steps == procrustes.steps == 11


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0])
def test_a_kernel_that_cannot_be_projected_leaves_all_as_they_were(bad: float) -> None:
    net = Net()
    procrustes = Procrustes(net)
    with torch.no_grad():
        net.wide.weight.mul_(0).add_(bad)
    before = kernels(procrustes)
    for act in (procrustes.project, procrustes.step):
        with pytest.raises(UsageError, match=r"^wide: "):
            act()
        for old, new in zip(before, kernels(procrustes), strict=True):
            torch.testing.assert_close(new, old, rtol=0, atol=0, equal_nan=True)


def test_an_interruption_while_writing_restores_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net()
    procrustes = Procrustes(net)
    before = kernels(procrustes)
    found = iter([*kernels(procrustes)[:2], torch.zeros(1, 2, 3)])  # the third does not fit: writing it fails
    monkeypatch.setattr(procrustes, "projected", lambda site, *, warm: next(found) + 1)
    monkeypatch.setattr("leadline.projections.procrustes.checked", lambda kernel: kernel)
    with pytest.raises(RuntimeError):
        procrustes.project()
    assert all(torch.equal(old, new) for old, new in zip(before, kernels(procrustes), strict=True))


def test_a_kernel_shared_by_modules_is_projected_once() -> None:
    first, second = nn.Conv2d(4, 8, 1, bias=False), nn.Conv2d(4, 8, 1, bias=False)
    second.weight = first.weight
    procrustes = Procrustes([first, second])
    assert len(procrustes.sites) == 1
    procrustes.attach(torch.optim.SGD([first.weight], lr=0.1))
    assert procrustes.deviations()["0"] < 1e-6
    third = nn.Conv2d(4, 8, 1, stride=2)
    third.weight = first.weight
    assert len(Procrustes([first, third]).sites) == 1  # of a 1x1 kernel the stride changes nothing


def test_a_kernel_shared_with_another_meaning_is_refused() -> None:
    first, second = nn.Conv2d(4, 8, 3), nn.Conv2d(4, 8, 3, stride=2)
    second.weight = first.weight
    with pytest.raises(UsageError, match="0 and 1 share a kernel"):
        Procrustes([first, second])


def test_channels_last_and_autocast() -> None:
    net = Net().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = sgd(net)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        procrustes = Procrustes(net).attach(optimizer)
        train(net, optimizer, 3)
    assert net.wide.weight.is_contiguous(memory_format=torch.channels_last)
    assert net.wide.weight.dtype == torch.float32
    found = procrustes.deviations()
    assert found["down"] < 1e-6
    assert found["wide"] < 0.03


def test_gradient_scaling_that_skips_a_step_skips_the_projection() -> None:
    net = Net()
    optimizer = sgd(net)
    procrustes = Procrustes(net, momentum="tangent").attach(optimizer)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for value in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(net(torch.randn(4, 3, 8, 8)), torch.arange(4)) * value).backward()
        scaler.step(optimizer)
        scaler.update()
    assert procrustes.steps == 2
    assert procrustes.deviations()["down"] < 1e-6


def test_bfloat16_kernels_stay_as_near_as_they_can_be_written() -> None:
    net = Net().to(torch.bfloat16)
    procrustes = Procrustes(net)
    procrustes.project()
    assert max(procrustes.deviations().values()) < 0.02


@pytest.mark.parametrize("given", ["one", "list", "names", "modulelist"])
def test_convolutions_can_be_given_in_many_ways(given: str) -> None:
    convs: list[Conv] = [nn.Conv2d(4, 8, 1), nn.Conv1d(4, 8, 3)]
    ways: dict[str, Any] = {
        "one": convs[0],
        "list": convs,
        "names": {"a": convs[0], "b": convs[1]},
        "modulelist": nn.ModuleList(convs),
    }
    expected = {"one": ["conv"], "list": ["0", "1"], "names": ["a", "b"], "modulelist": ["0", "1"]}
    procrustes = Procrustes(ways[given])
    assert [site.name for site in procrustes.sites] == expected[given]
    assert all(one.after < 2e-3 for one in procrustes.project())


def test_procresnet_starts_on_its_sets() -> None:
    net = models.create("procresnet-22")
    assert all(one.before < 1e-6 and one.moved < 1e-6 for one in Procrustes(net).project())


def test_detaching_and_attaching_again() -> None:
    net = Net()
    optimizer = sgd(net)
    procrustes = Procrustes(net).attach(optimizer)
    with pytest.raises(UsageError, match="already attached"):
        procrustes.attach(optimizer)
    procrustes.detach()
    train(net, optimizer, 2)
    assert procrustes.steps == 0
    assert procrustes.deviations()["down"] > 1e-4
    procrustes.attach(optimizer)
    assert procrustes.deviations()["down"] < 1e-6


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Procrustes(nn.Sequential(nn.Linear(3, 4))), "no convolution of Sequential changes the shape"),
        (lambda: Procrustes([nn.Linear(3, 4)]), "0: expected a Conv1d"),
        (lambda: Procrustes([nn.ConvTranspose2d(3, 4, 2)]), "ConvTranspose2d"),
        (lambda: Procrustes([nn.LazyConv2d(4, 1)]), "no shape yet"),
        (lambda: Procrustes([parametrizations.weight_norm(nn.Conv2d(3, 4, 1))]), "computed from other parameters"),
        (lambda: Procrustes([nn.Conv2d(3, 4, 1)], every=0), "every=0"),
        (lambda: Procrustes([nn.Conv2d(3, 4, 1)], schedule="epoch"), "unknown schedule 'epoch'"),
        (lambda: Procrustes([nn.Conv2d(3, 4, 1)], momentum="zero"), "unknown momentum 'zero'"),
        (lambda: Procrustes([nn.Conv2d(3, 4, 1)]).load_state_dict({"step": 1}), "state of a Procrustes"),
        (lambda: Procrustes([nn.Conv2d(4, 4, 3)]).project(), r"0: .*square.*orthogonal"),
        (lambda: Procrustes([nn.Conv2d(3, 4, 1)]).attach(sgd(nn.Linear(2, 2))), "does not train 0"),
    ],
)
def test_mistakes_are_one_clear_error(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_the_same_kernels_give_the_same_projection_bit_for_bit() -> None:
    net = Net()
    twin = copy.deepcopy(net)
    for one in (net, twin):
        optimizer = sgd(one)
        Procrustes(one, every=2, schedule="random").attach(optimizer)
        train(one, optimizer, 4)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), twin.parameters(), strict=True))


def _rank(rank: int, folder: str) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.manual_seed(rank)
    net = nn.parallel.DistributedDataParallel(Net())
    optimizer = sgd(net)
    Procrustes(net, every=2, schedule="random").attach(optimizer)
    train(net, optimizer, 4, seed=rank)
    torch.save(net.module.state_dict(), Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_stay_bit_identical(tmp_path: Path) -> None:
    """In a fresh interpreter, because one that has run other tests may have threads that a fork loses."""
    subprocess.run([sys.executable, __file__, str(tmp_path)], check=True, timeout=120)
    one, two = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    net = Net()
    net.load_state_dict(one)
    assert Procrustes(net).deviations()["wide"] < 0.05


if __name__ == "__main__":
    torch.multiprocessing.start_processes(_rank, (sys.argv[1],), nprocs=2, start_method="fork")
