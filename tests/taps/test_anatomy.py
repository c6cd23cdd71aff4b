"""The blocks of other people's models, found without a hint and against what zeroed branches compute."""

import copy
import json
import warnings
from collections import Counter
from typing import Any

import pytest
import torch
from foreign import MODELS, build, same_state, state
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.core.errors import UsageError
from leadline.models import create
from leadline.taps.anatomy import Anatomy, anatomy

PLAIN, IDENTITY, TRANSITION = "plain", "identity", "transition"

# name: (blocks, kinds, shortcut lengths of blocks with a skip, first block, last block)
EXPECTED: dict[str, tuple[dict[str, int], set[tuple[int, ...]], str, str]] = {
    "resnet18": ({IDENTITY: 5, TRANSITION: 3}, {(2,)}, "layer1.0", "layer4.1"),
    "resnet50": ({IDENTITY: 12, TRANSITION: 4}, {(3,)}, "layer1.0", "layer4.2"),
    "resnext50": ({IDENTITY: 12, TRANSITION: 4}, {(3,)}, "layer1.0", "layer4.2"),
    "vit_b_16": ({IDENTITY: 12}, {(2, 2)}, "encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_11"),
    "vgg11_bn": ({PLAIN: 11}, set(), "features.0", "classifier.6"),
    "densenet121": ({PLAIN: 7}, set(), "features.denseblock1", "features.denseblock4"),
    "mobilenet_v2": ({PLAIN: 7, IDENTITY: 10}, {(3,)}, "features.1", "features.17"),
    "swin_t": ({IDENTITY: 12, PLAIN: 3}, {(2, 2)}, "features.1.0", "features.7.1"),
    "resnetv2_50": ({IDENTITY: 12, TRANSITION: 4}, {(3,)}, "stages.0.blocks.0", "stages.3.blocks.2"),
    "convnext_atto": ({IDENTITY: 12, PLAIN: 3}, {(3,)}, "stages.0.blocks.0", "stages.3.blocks.1"),
    "mixer": ({IDENTITY: 8}, {(2, 2)}, "blocks.0", "blocks.7"),
    "gpt2": ({IDENTITY: 3}, {(2, 2)}, "transformer.h.0", "transformer.h.2"),
    "llama": ({IDENTITY: 3}, {(2, 2)}, "model.layers.0", "model.layers.2"),
    "bert": ({IDENTITY: 3}, {(2, 2)}, "encoder.layer.0", "encoder.layer.2"),
    "t5": ({IDENTITY: 9}, {(2,)}, "decoder.block.0.layer.0", "decoder.block.2.layer.2"),
    "hf_vit": ({IDENTITY: 4}, {(2, 2)}, "vit.layers.0", "vit.layers.3"),
    "inplace_resnet": ({IDENTITY: 3, TRANSITION: 1}, {(2,)}, "blocks.0", "blocks.3"),
    "functional_resnet": ({IDENTITY: 1}, {(2, 2, 2, 2)}, "first.0 … second.3", "first.0 … second.3"),
    "preactivation": ({IDENTITY: 3, TRANSITION: 1}, {(2,)}, "1", "4"),
    "unet": ({PLAIN: 8}, set(), "inc", "outc"),
    "lstm": ({PLAIN: 2}, set(), "lstm", "fc"),
    "twice": ({IDENTITY: 3}, {(2,)}, "shared@1", "last"),
    "two_heads": ({IDENTITY: 1, TRANSITION: 1}, {(2,)}, "body.1", "body.2"),
    "volumes": ({IDENTITY: 3}, {(2, 2)}, "layers.0", "layers.2"),
    "mlp": ({PLAIN: 6}, set(), "1", "11"),
}


@pytest.mark.parametrize("name", MODELS)
def test_blocks_are_found_and_nothing_is_left_behind(name: str) -> None:
    foreign = build(name)
    foreign.loss().backward()
    before = state(foreign.model)
    found = anatomy(foreign.model, foreign.inputs)
    assert same_state(state(foreign.model), before)
    kinds, lengths, first, last = EXPECTED[name]
    assert Counter(block.kind for block in found.blocks) == kinds, found
    assert {block.lengths for block in found.blocks if block.lengths} == lengths
    assert (found.blocks[0].name, found.blocks[-1].name) == (first, last)
    assert len({block.name for block in found.blocks}) == len(found.blocks)
    assert found.parameters == sum(parameter.numel() for parameter in foreign.model.parameters())
    assert sum(block.parameters for block in found.blocks) <= found.parameters


OWN = {
    "resnet-20": {IDENTITY: 7, TRANSITION: 2},
    "resnext-20": {IDENTITY: 3, TRANSITION: 3},
    "plainnet-20": {PLAIN: 9},
    "preplain-20": {PLAIN: 6},
    "procresnet-22": {IDENTITY: 6, PLAIN: 2},
    "diracnet-20": {PLAIN: 9},
    "shortcut-resnet-20": {IDENTITY: 6, TRANSITION: 3},
    "resnest-conv-8": {IDENTITY: 3},
    "a-resnest-conv-8": {PLAIN: 3},
    "densenest-conv-5": {PLAIN: 4},
    "shortcut-net-16": {IDENTITY: 8},
    "shortcut-net-16-plain": {PLAIN: 8},
}


@pytest.mark.parametrize("name", OWN)
def test_blocks_of_our_own_networks_are_those_they_are_built_of(name: str) -> None:
    model = create(name)
    shape = (10,) if name.startswith("shortcut-net") else (3, 16, 16)
    found = anatomy(model, torch.randn(2, *shape))
    assert Counter(block.kind for block in found.blocks) == OWN[name]
    made_of = {block.modules[0].split(".")[1] for block in found.blocks}
    assert made_of == {name for name, _ in model.blocks.named_children()}


PRE_NORM = ["vit_b_16", "resnetv2_50", "convnext_atto", "mixer", "gpt2", "llama", "hf_vit", "preactivation", "resnet50"]


@pytest.mark.parametrize("name", PRE_NORM)
def test_identity_blocks_pass_their_input_on_when_their_parameters_are_zero(name: str) -> None:
    foreign = build(name)
    found = anatomy(foreign.model, foreign.inputs)
    modules = dict(foreign.model.named_modules())
    for block in found.blocks:
        (module,) = (modules[name] for name in block.modules)
        x = torch.rand(block.in_shape)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.zero_()
            y = call_block(name, foreign.model, module, x)
        assert (block.kind == IDENTITY) == (y.shape == x.shape and torch.equal(x, y)), block


def call_block(name: str, model: nn.Module, module: nn.Module, x: Tensor) -> Tensor:
    if name == "llama":
        angles = model.model.rotary_emb(x, torch.arange(x.shape[1])[None])
        y = module(x, position_embeddings=angles)
    else:
        y = module(x)
    return y[0] if isinstance(y, tuple) else y


def test_the_chain_is_unbroken_where_the_model_is() -> None:
    found = anatomy(*of("resnet50"))
    assert not found.gaps
    assert [str(place) for place in found.boundaries[:3]] == ["layer1.0:in.0", "layer1.0:out", "layer1.1:out"]
    for before, after in zip(found.blocks, found.blocks[1:], strict=False):
        assert before.out_shape == after.in_shape


def of(name: str) -> tuple[nn.Module, Any]:
    foreign = build(name)
    return foreign.model, foreign.inputs


def test_every_model_has_its_table() -> None:
    table = str(anatomy(*of("twice")))
    assert table.splitlines()[0] == "Twice: 3 blocks (3 identity), 2,694 parameters"
    table_words = " ".join(table.split())
    assert "shared@2 identity 2 2x8x8x8 2x8x8x8 0 call 2 of 2 of shared" in table_words
    assert "not called" in table and "unused" in table


def test_a_module_called_twice_counts_once() -> None:
    found = anatomy(*of("twice"))
    first, second, last = found.blocks
    assert (first.calls, second.calls, last.calls) == (2, 2, 1)
    assert first.parameters == last.parameters > 0 == second.parameters
    assert [block.input.call for block in found.blocks] == [0, 1, None]
    assert found.not_called == ("unused",)


def test_tied_weights_are_marked() -> None:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    model[2].weight = model[0].weight
    found = anatomy(model, torch.ones(2, 4))
    assert [block.parameters for block in found.blocks] == [20, 20, 4]
    assert [block.note for block in found.blocks] == ["shares parameters with 2", "", "shares parameters with 0"]


def test_a_long_table_says_what_is_alike_once() -> None:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(40)), nn.Linear(4, 3))
    lines = str(anatomy(model, torch.ones(2, 4))).splitlines()
    assert len(lines) == 4 + 2  # two curves along depth
    assert "1-40" in lines[2] and "0 … 39" in lines[2]


def test_it_goes_into_json() -> None:
    found = anatomy(*of("unet"))
    assert json.loads(json.dumps(found.to_json()))["blocks"][0]["name"] == "inc"


class FunctionalPostActivation(nn.Module):
    """x = relu(x + f(x)) in the model's own forward: the next convolution meets every boundary."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(9))

    def forward(self, x: Tensor) -> Tensor:
        x = self.convs[0](x)
        for one, two in zip(self.convs[1::2], self.convs[2::2], strict=True):
            x = F.relu(x + two(F.relu(one(x))))
        return x.mean((2, 3))


class Body(nn.Module):
    """Attention and feed-forward layers of many blocks in one module, as in many small transformers."""

    def __init__(self, depth: int = 4, width: int = 8) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(2))
            for _ in range(depth)
        )

    def forward(self, x: Tensor) -> Tensor:
        for attention, feed in self.layers:
            x = attention(x) + x
            x = feed(x) + x
        return x


def test_skips_written_between_modules_make_blocks() -> None:
    found = anatomy(FunctionalPostActivation(), torch.ones(2, 4, 5, 5))
    assert [block.kind for block in found.blocks] == [IDENTITY] * 4
    assert found.blocks[0].name == "convs.1 … convs.2"
    wrapped = anatomy(nn.Sequential(nn.Linear(8, 8), Body(), nn.Linear(8, 3)), torch.ones(2, 8))
    assert [block.name for block in wrapped.blocks] == [f"1.layers.{i}.{j}" for i in range(4) for j in range(2)]
    assert {block.lengths for block in wrapped.blocks} == {(1,)}


class OptionA(nn.Module):
    """A parameter-free change of shape: strided slice, channels filled with zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2))


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return (0.5 * x + self.conv(x)) / 2**0.5


def test_kinds_of_unusual_skips() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), OptionA(), Scaled(), Scaled(), nn.Flatten(), nn.LazyLinear(2))
    x = torch.ones(2, 3, 4, 4)
    model(x)
    found = anatomy(model, x)
    assert [block.kind for block in found.blocks] == [TRANSITION, IDENTITY, IDENTITY]
    assert found.blocks[0].note == "skip through slice, constantpadnd"


# -- named blocks ------------------------------------------------------------------------------------------------------


def test_names_override_what_was_found() -> None:
    model, inputs = of("resnet18")
    assert [block.name for block in anatomy(model, inputs, blocks="layer?").blocks] == [
        f"layer{i}" for i in range(1, 5)
    ]
    assert len(anatomy(model, inputs, blocks="layer*.*").blocks) == 8
    convs = anatomy(model, inputs, blocks=["layer1.**.conv*", "layer2.0"])
    assert [block.name for block in convs.blocks][-2:] == ["layer1.1.conv2", "layer2.0"]
    assert convs.gaps[0].operations == ("batchnorm", "relu")


def test_a_name_that_is_never_called_is_said() -> None:
    found = anatomy(*of("twice"), blocks=["unused", "last"])
    assert [block.name for block in found.blocks] == ["last"]
    assert found.not_measured == ("unused was not called",)


def test_stages_have_every_skip_of_their_blocks() -> None:
    model, inputs = of("resnet18")
    stage = anatomy(model, inputs, blocks="layer2").blocks[0]
    assert (stage.kind, stage.lengths) == (TRANSITION, (2, 2))


def test_encoder_of_an_encoder_decoder_by_name() -> None:
    model, inputs = of("t5")
    found = anatomy(model, inputs, blocks="encoder.block.*")
    assert [block.kind for block in found.blocks] == [IDENTITY] * 3


def test_an_unknown_name_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match=r"unknown blocks 'layer1\.9'; did you mean .*layer1\.0"):
        anatomy(*of("resnet18"), blocks="layer1.9")


# -- bad input ---------------------------------------------------------------------------------------------------------


def why(model: nn.Module, batch: Any, **kwargs: Any) -> str:
    found = anatomy(model, batch, **kwargs)
    assert isinstance(found, Anatomy) and not found.blocks
    assert "not measured" in str(found)
    return " ".join(found.not_measured)


def test_why_there_are_no_blocks() -> None:
    assert "no parameters" in why(nn.Sequential(nn.Flatten(), nn.ReLU()), torch.ones(2, 3))
    assert "no tensor that depends" in why(NoOutput(), torch.ones(2, 3))
    assert "relu takes no tensor" in why(Detached(), torch.ones(2, 3), blocks="relu")


class NoOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x).argmax(1)


class Detached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.relu = nn.Linear(3, 3), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        self.relu(x.detach())
        return self.fc(x)


@pytest.mark.parametrize("fill", [float("nan"), float("inf"), 0.0])
def test_values_do_not_matter(fill: float) -> None:
    model, _ = of("inplace_resnet")
    assert len(anatomy(model, torch.full((2, 3, 8, 8), fill)).blocks) == 4


@pytest.mark.parametrize("batch", [0, 1])
def test_few_samples_in_training_mode(batch: int) -> None:
    model, _ = of("inplace_resnet")
    assert len(anatomy(model.train(), torch.ones(batch, 3, 8, 8)).blocks) == 4


def test_half_precision_frozen_and_in_inference_mode() -> None:
    model, _ = of("inplace_resnet")
    model.bfloat16().requires_grad_(False)
    with torch.inference_mode():
        found = anatomy(model, torch.ones(2, 3, 8, 8, dtype=torch.bfloat16))
    assert Counter(block.kind for block in found.blocks) == {IDENTITY: 3, TRANSITION: 1}
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_what_cannot_be_read_is_one_clear_line() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)))
    with pytest.raises(UsageError, match="scripted"):
        anatomy(scripted, torch.ones(2, 3))
    mixed = anatomy(nn.Sequential(nn.Linear(3, 3), scripted, nn.Linear(3, 3), nn.Linear(3, 3)), torch.ones(2, 3))
    assert [block.name for block in mixed.blocks] == ["0", "(code before 2:in.0)", "2", "3"]
    with pytest.raises(UsageError, match=r"expected a torch\.nn\.Module, got function"):
        anatomy(build, torch.ones(2, 3))
    with pytest.raises(UsageError, match="DataParallel"):
        anatomy(nn.DataParallel(nn.Linear(3, 3)), torch.ones(2, 3))


def test_a_lazy_model_is_one_clear_line() -> None:
    model = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 3))
    with pytest.raises(UsageError, match=r"0\.weight has no shape yet \(a lazy module\); call the model once"):
        anatomy(model, torch.ones(2, 5))
    model(torch.ones(2, 5))
    assert len(anatomy(model, torch.ones(2, 5)).blocks) == 2


def test_hooks_of_others_do_not_make_a_transition() -> None:
    model, inputs = of("gpt2")
    model.transformer.h[0].register_full_backward_hook(lambda *_: None)
    assert [block.kind for block in anatomy(model, inputs).blocks] == [IDENTITY] * 3


def test_a_model_that_fails_is_one_clear_line() -> None:
    model, _ = of("inplace_resnet")
    before = state(model)
    with pytest.raises(UsageError, match=r"the model failed on this batch: RuntimeError: .*expected input"):
        anatomy(model, torch.ones(2, 4, 8, 8))
    assert same_state(state(model), before)


def test_the_next_training_step_is_the_same() -> None:
    foreign = build("gpt2")
    twin = copy.deepcopy(foreign)
    anatomy(foreign.model, foreign.inputs)
    losses = []
    for each in (foreign, twin):
        torch.manual_seed(3)
        losses.append(each.loss())
    assert torch.equal(*losses)


class Hidden(torch.autograd.Function):
    """A reversible net's way to run a module: without history, recomputed later."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, module: nn.Module) -> Tensor:
        return module(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0], None


class Reversible(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = Hidden.apply(x, block)
        return self.last(x)


def test_custom_functions_keep_their_inside_to_themselves() -> None:
    found = anatomy(Reversible(), torch.ones(2, 4))
    assert [block.name for block in found.blocks] == ["blocks.0", "blocks.1", "blocks.2"]
    assert {block.note for block in found.blocks} == {"kind not known because a custom function hides its inside"}
