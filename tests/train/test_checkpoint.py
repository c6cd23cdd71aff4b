"""Checkpoints: everything comes back bit for bit, and what is damaged or foreign is refused by name."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from leadline.core.errors import UnreadableError
from leadline.train import checkpoint, seeds

MAKE = {
    "sgd": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: Adam(p, lr=0.1),
    "adamw": lambda p: AdamW(p, lr=0.1),
}


def net(width: int = 4) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.Flatten(), nn.Dropout(), nn.Linear(4 * width, 2)
    )


def step(model: nn.Module, optimizer: Optimizer) -> torch.Tensor:
    loss: torch.Tensor = model(torch.randn(8, 1, 4, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
def test_going_on_from_a_checkpoint_is_bit_exact(tmp_path: Path, kind: str, memory: torch.memory_format) -> None:
    model = net().to(memory_format=memory)
    optimizer = MAKE[kind](model.parameters())
    for _ in range(3):
        step(model, optimizer)
    checkpoint.write(tmp_path, model, optimizer, checkpoint.Position(3, 77, {"loss": 0.5}))
    wanted = [step(model, optimizer) for _ in range(4)]

    torch.manual_seed(123)
    other = net().to(memory_format=memory)
    again = MAKE[kind](other.parameters())
    path, notes = checkpoint.newest(tmp_path)
    assert path is not None and not notes
    assert checkpoint.read(path, other, again) == checkpoint.Position(3, 77, {"loss": 0.5})
    assert [step(other, again) for _ in range(4)] == wanted
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(a, b) and a.stride() == b.stride()


def test_every_generator_comes_back() -> None:
    def draw() -> tuple[float, ...]:
        return (float(torch.rand(1)), random.random(), random.gauss(0, 1), *np.random.normal(size=3))  # noqa: NPY002

    seeds.seed_all(5)
    draw()
    state = seeds.capture()
    wanted = draw()
    seeds.seed_all(6)
    seeds.restore(state)
    assert draw() == wanted
    with seeds.untouched():
        inside = draw()
    assert draw() == inside


def test_forked_generators_differ_and_repeat() -> None:
    draws = [float(torch.rand(1, generator=seeds.forked(0, purpose))) for purpose in (0, 1, 0)]
    assert draws[0] == draws[2] != draws[1]


def test_two_are_kept_and_a_damaged_one_is_passed_over(tmp_path: Path) -> None:
    model = net()
    optimizer = MAKE["sgd"](model.parameters())
    for number in range(4):
        checkpoint.write(tmp_path, model, optimizer, checkpoint.Position(number, 0, {}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000002", "step-000000003"]
    file = tmp_path / "step-000000003" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    path, notes = checkpoint.newest(tmp_path)
    assert path == tmp_path / "step-000000002"
    assert "model.safetensors is damaged" in notes[0]
    (tmp_path / "step-000000002" / "state.json").write_text("{")
    assert checkpoint.newest(tmp_path)[0] is None


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    model = net()
    path = checkpoint.write(tmp_path, model, MAKE["sgd"](model.parameters()), checkpoint.Position(0, 0, {}))
    other = net(width=5)
    with pytest.raises(UnreadableError, match=r"from another model: 0\.weight is 4x1x3x3 there, 5x1x3x3 here"):
        checkpoint.read(path, other, MAKE["sgd"](other.parameters()))


def test_a_full_disk_leaves_the_former_checkpoint(tmp_path: Path) -> None:
    code = f"""
import resource, signal, sys
from pathlib import Path
from torch import nn
from torch.optim import SGD
from leadline.core.errors import UnreadableError
from leadline.train import checkpoint
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
model = nn.Linear(100, 100)
optimizer = SGD(model.parameters(), lr=0.1)
checkpoint.write(Path({str(tmp_path)!r}), model, optimizer, checkpoint.Position(1, 0, {{}}))
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    checkpoint.write(Path({str(tmp_path)!r}), model, optimizer, checkpoint.Position(2, 0, {{}}))
except UnreadableError as error:
    print(error)
    sys.exit(error.exit_code)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 3, ended.stderr
    assert ended.stdout.startswith(f"cannot write the checkpoint {tmp_path}")
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]
    assert checkpoint.newest(tmp_path)[0] is not None
