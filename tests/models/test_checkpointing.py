"""Block checkpointing: the same numbers, statistics updated once, random numbers repeated, far less kept."""

import pytest
import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.models import create
from leadline.models.chain import Chain, Input
from leadline.models.layers import sequence
from leadline.models.residual import Residual


def kept_bytes(model: Chain, x: Tensor) -> int:
    """What the forward pass keeps for the backward pass, parameters aside, each storage once."""
    own = {p.untyped_storage().data_ptr() for p in (*model.parameters(), *model.buffers())}
    found: dict[int, int] = {}
    alive = []

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        alive.append(tensor)
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x)
    return sum(found.values())


def test_far_less_is_kept() -> None:
    for name in ("resnet-56", "preresnet-56", "procresnet-58"):
        model, x = create(name), torch.randn(2, 3, 32, 32)
        everything = kept_bytes(model, x)
        model.checkpoint_blocks = 1
        by_block = kept_bytes(model, x)
        model.checkpoint_blocks = True
        assert kept_bytes(model, x) <= by_block < everything / 2
        model.checkpoint_blocks = 3
        assert kept_bytes(model, x) < everything / 5


def test_statistics_are_updated_once() -> None:
    model = create("resnet-8")
    model.checkpoint_blocks = True
    for _ in range(3):
        model(torch.randn(4, 3, 8, 8)).sum().backward()
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert norms and all(norm.num_batches_tracked == 3 for norm in norms)


def test_statistics_are_still_the_modules_own() -> None:
    """Buffers are the same tensors after the step: an average or a device copy that holds them stays connected."""
    model = create("resnet-8")
    model.checkpoint_blocks = 1
    before = [id(buffer) for buffer in model.buffers()]
    model(torch.randn(4, 3, 8, 8)).sum().backward()
    assert [id(buffer) for buffer in model.buffers()] == before


def test_random_numbers_repeat() -> None:
    def chain(checkpoint: bool | int) -> tuple[Chain, Tensor]:
        torch.manual_seed(3)
        blocks = {f"b{i}": Residual(sequence(linear=nn.Linear(6, 6), drop=nn.Dropout(0.5))) for i in range(5)}
        model = Chain(sequence(), blocks, nn.Linear(6, 1), takes=Input(channels=6))
        model.checkpoint_blocks = checkpoint
        x = torch.randn(7, 6)
        torch.manual_seed(4)
        model(x).sum().backward()
        return model, torch.rand(1)

    (plain, after), *others = chain(False), chain(True), chain(1), chain(2)
    for other, then in others:
        assert torch.equal(then, after)
        for p, q in zip(plain.parameters(), other.parameters(), strict=True):
            assert p.grad is not None and q.grad is not None and torch.equal(p.grad, q.grad)


def test_without_gradients_nothing_is_recomputed() -> None:
    model = create("resnet-8").eval()
    model.checkpoint_blocks = True
    calls = []
    model.blocks[0].register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        model(torch.randn(2, 3, 8, 8))
    assert calls == [1]


def test_a_negative_number_of_blocks_is_refused() -> None:
    model = create("resnet-8")
    model.checkpoint_blocks = -1
    with pytest.raises(UsageError, match="checkpoint_blocks=-1"):
        model(torch.randn(2, 3, 8, 8))
