"""Laws that every network of every family keeps: shapes, gradients, boundaries, depth, state, names."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.core.spec import Spec
from leadline.models import create
from leadline.models.chain import Chain
from leadline.models.estimators import AugmentedResNEst
from leadline.models.family import Named


def test_output_is_one_row_per_example(model: Chain, batch: Tensor) -> None:
    outputs = 1000 if "imagenet" in str(model.spec) else 10
    assert model(batch).shape == (len(batch), outputs)


def test_gradient_reaches_every_parameter(model: Chain, batch: Tensor) -> None:
    model(batch).square().sum().backward()
    unreached = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert unreached == []


def test_boundaries_are_what_the_blocks_hand_on(model: Chain, batch: Tensor) -> None:
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def note(name: str, given: tuple[Tensor, ...], returned: Tensor | tuple[Tensor, Tensor]) -> None:
        seen[name] = (given[0], returned if isinstance(returned, Tensor) else returned[0])

    for name in model.boundary_names:
        module = model.get_submodule(name)
        module.register_forward_hook(lambda _, given, returned, name=name: note(name, given, returned))
    model(batch)
    assert tuple(seen) == model.boundary_names
    outputs = [returned for _, returned in seen.values()]
    assert all(given is before for (given, _), before in zip(list(seen.values())[1:], outputs, strict=False))


def test_boundary_names_do_not_depend_on_the_options(named: Named, model: Chain) -> None:
    other = named.build(**({"norm": "none"} if "norm" in named.family.options else {}))
    assert other.boundary_names == model.boundary_names == ("stem", *(f"blocks.{name}" for name in model.block_names))


def test_depth_is_the_one_in_the_name(named: Named, model: Chain) -> None:
    if named.numbers:
        assert model.depth == named.numbers[0]


def test_state_survives_a_round_trip(named: Named, model: Chain, batch: Tensor) -> None:
    model(batch)
    other = deepcopy(model)
    for tensor in (*other.parameters(), *other.buffers()):
        tensor.data.zero_()
    other.load_state_dict(model.state_dict())
    assert torch.equal(model.eval()(batch), other.eval()(batch))


def test_spec_builds_the_same_network_again(named: Named) -> None:
    first = named.build()
    assert first.spec == Spec.of(named.name)
    with torch.device("meta"):
        second = create(first.spec.name, **first.spec.kwargs)
    assert str(first) == str(second)
    assert first.source is not None and first.source.paper == named.family.paper


def test_seed_decides_the_weights(named: Named) -> None:
    def weights(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        return [p.detach() for p in named.build().parameters()]

    first, again, other = weights(1), weights(1), weights(2)
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


def test_other_data_is_refused_in_one_line(model: Chain, batch: Tensor) -> None:
    with pytest.raises(UsageError, match="the network takes") as caught:
        model(torch.cat([batch, batch], dim=1))
    assert "\n" not in str(caught.value)


def test_unknown_option_lists_the_options(named: Named) -> None:
    with pytest.raises(UsageError, match="unknown option of"):
        named.build(number_of_wings=2)


@pytest.mark.parametrize("checkpoint", [True, 1, 2])
def test_checkpointing_changes_no_number(model: Chain, batch: Tensor, checkpoint: bool | int) -> None:
    other = deepcopy(model)
    other.checkpoint_blocks = checkpoint
    for net in (model, other):
        net(batch).square().sum().backward()
    assert all(map(torch.equal, model.buffers(), other.buffers()))
    for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        assert p.grad is not None and q.grad is not None
        assert torch.equal(p.grad, q.grad), name


def test_float32_stays_float32(named: Named) -> None:
    net = named.build()
    channels, *size = net.input_shape
    x = torch.randn(2, channels, *[max(8, net.takes.smallest) for _ in size])
    assert net(x).dtype == torch.float32
    assert isinstance(net, AugmentedResNEst) == named.name.startswith("a-resnest")
