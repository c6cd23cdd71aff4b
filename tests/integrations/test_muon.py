"""Muon with kernels: each step is that of torch's own Muon on the matrices, and everything else finds the kernels."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import leadline as ll
from leadline.core.errors import UsageError
from leadline.integrations.muon import Muon, divided

pytestmark = pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")


def net(groups: int = 2) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 12, 3, groups=groups), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 4),
    )  # fmt: skip


def trained(model: nn.Module, optimizers: list[torch.optim.Optimizer], steps: int = 6, start: int = 0) -> list[float]:
    losses = []
    for step in range(start, start + steps):
        torch.manual_seed(step)
        images = torch.randn(16, 3, 8, 8)
        loss = F.cross_entropy(model(images), images.mean((2, 3)).argmax(1))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    return losses


def both(model: nn.Module, **options: float) -> list[torch.optim.Optimizer]:
    hidden, others = divided(model)
    return [Muon(hidden, **{"lr": 0.02, **options}), torch.optim.AdamW(others, lr=1e-3)]


def test_torch_refuses_kernels_and_this_does_not() -> None:
    model = net()
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        torch.optim.Muon([model[0].weight])
    losses = trained(model, both(model), steps=30)
    assert sum(losses[-5:]) < sum(losses[:5])


@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("groups", [1, 4])
def test_a_step_is_the_step_of_torch_on_the_matrices(groups: int, format: torch.memory_format) -> None:
    """Against torch's Muon on copies (out / g, in k k), one matrix a group, written back by hand."""
    model = net(groups).to(memory_format=format)
    kernel = model[3].weight
    matrices = [nn.Parameter(part.flatten(1).clone()) for part in kernel.detach().contiguous().chunk(groups)]
    ours = Muon([{"params": [kernel], "matrices": groups}], lr=0.05, weight_decay=0.1)
    theirs = torch.optim.Muon(matrices, lr=0.05, weight_decay=0.1)
    for step in range(4):
        kernel.grad = torch.randn(kernel.shape, generator=torch.Generator().manual_seed(step)).to(memory_format=format)
        for matrix, part in zip(matrices, kernel.grad.contiguous().chunk(groups), strict=True):
            matrix.grad = part.flatten(1).clone()
        ours.step()
        theirs.step()
        wanted = torch.cat([matrix.detach() for matrix in matrices]).view(kernel.shape)
        # the iteration is in bfloat16, which another order of columns rounds differently
        tolerance = 1e-6 if kernel.is_contiguous() else 2e-3
        assert torch.allclose(kernel.detach(), wanted, atol=tolerance)
    assert ours.state[kernel]["momentum_buffer"].shape == kernel.shape


def test_what_is_divided() -> None:
    resnet = ll.models.create("resnet-20", widths=[4, 4, 8])
    hidden, others = divided(resnet)
    taken = [parameter for group in hidden for parameter in group["params"]]
    assert {id(p) for p in [*taken, *others]} == {id(p) for p in resnet.parameters()}
    assert len(taken) + len(others) == len(list(resnet.parameters()))
    matrices = [parameter for parameter in resnet.parameters() if parameter.ndim > 1]
    assert [id(p) for p in taken] == [id(p) for p in matrices[:-1]]
    depthwise = nn.Sequential(nn.Conv1d(6, 6, 3, groups=6), nn.Linear(6, 6), nn.Linear(6, 2))
    assert divided(depthwise)[0] == [{"params": [depthwise[1].weight], "matrices": 1}]
    embedded = nn.Sequential(nn.Embedding(5, 6), nn.Linear(6, 6), nn.Linear(6, 5, bias=False))
    embedded[2].weight = embedded[0].weight
    assert divided(embedded)[0] == [{"params": [embedded[1].weight], "matrices": 1}]


def test_what_is_no_matrix_is_refused() -> None:
    for parameters, words in (
        ([nn.Parameter(torch.zeros(3))], "got the shape \\(3,\\)"),
        ([{"params": [nn.Parameter(torch.zeros(3, 2, 1))], "matrices": 2}], "in 2 equal parts"),
        ([nn.Parameter(torch.zeros(4, 3, 5).permute(2, 0, 1))], "is no matrix in memory"),
    ):
        with pytest.raises(UsageError, match=words):
            Muon(parameters)


def halved(optimizer: torch.optim.Optimizer) -> list[float]:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    rates = []
    for _ in range(3):
        rates.append(moved(optimizer))
        scheduler.step()
    return rates


def moved(optimizer: torch.optim.Optimizer) -> float:
    kernel = optimizer.param_groups[0]["params"][0]
    before: Tensor = kernel.detach().clone()
    kernel.grad = torch.ones_like(kernel)
    optimizer.step()
    return float((kernel.detach() - before).norm())


def test_schedulers_are_heard() -> None:
    kernel = nn.Parameter(torch.randn(8, 4, 3, 3))
    rates = halved(Muon([kernel], lr=0.1, weight_decay=0.0, momentum=0.0, nesterov=False))
    assert all(a / b == pytest.approx(2, rel=1e-3) for a, b in pairwise(rates))


@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
def test_going_on_from_a_state_is_exact(format: torch.memory_format) -> None:
    whole = net().to(memory_format=format)
    losses = trained(whole, both(whole), steps=6)
    first = net().to(memory_format=format)
    optimizers = both(first)
    assert trained(first, optimizers, steps=3) == losses[:3]
    second = net(2).to(memory_format=format)
    others = both(second, lr=0.5)
    second.load_state_dict(first.state_dict())
    for saved, loaded in zip(optimizers, others, strict=True):
        loaded.load_state_dict(saved.state_dict())
    assert trained(second, others, steps=3, start=3) == losses[3:]


def test_with_procrustes_a_recorder_and_a_later_group(tmp_path: Path) -> None:
    model = ll.models.create("procresnet-22", widths=[4, 8, 8])
    optimizers = both(model, lr=0.002)
    hidden = optimizers[0]
    taken = {id(p) for group in hidden.param_groups for p in group["params"]}
    convs = {name: conv for name, conv in ll.transitions(model).items() if id(conv.weight) in taken}
    procrustes = ll.Procrustes(convs).attach(hidden)
    later = nn.Parameter(torch.randn(6, 4, 3))
    hidden.add_param_group({"params": [later]})
    before = later.detach().clone()
    later.grad = torch.ones_like(later)
    with ll.Recorder(model, tmp_path / "a", optimizer=hidden, probes="update_ratio") as recorder:
        for _ in range(3):
            loss = F.cross_entropy(model(torch.randn(4, 3, 8, 8)), torch.randint(10, (4,)))
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            recorder.step(loss)
            model.zero_grad()
    kept = procrustes.deviations()
    procrustes.detach()
    for group in hidden.param_groups:
        for kernel in group["params"]:
            kernel.grad = torch.ones_like(kernel)
    hidden.step()
    free = procrustes.deviations()
    assert max(kept.values()) < 1e-3 and all(kept[name] < free[name] / 5 for name in kept)
    assert not torch.equal(later.detach(), before)


def test_a_loss_scale_changes_nothing() -> None:
    plain, scaled = net(), net()
    for which, scaler in ((plain, None), (scaled, torch.amp.GradScaler("cpu", init_scale=1024.0))):
        optimizer = both(which)[0]
        torch.manual_seed(0)
        loss = F.cross_entropy(which(torch.randn(8, 3, 8, 8)), torch.randint(4, (8,)))
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), scaled.parameters(), strict=True))
