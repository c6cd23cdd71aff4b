"""Models that other people wrote, or write like this: small, seeded, each with inputs, targets and a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Foreign:
    """A model, inputs as its forward takes them (tensor, tuple or dict), targets, and loss_fn(output, targets)."""

    model: nn.Module
    inputs: Any
    targets: Tensor
    loss_fn: Callable[[Any, Tensor], Tensor]

    def loss(self) -> Tensor:
        if isinstance(self.inputs, dict):
            return self.loss_fn(self.model(**self.inputs), self.targets)
        return self.loss_fn(
            self.model(*self.inputs if isinstance(self.inputs, tuple) else (self.inputs,)), self.targets
        )


def declare_vision_operators() -> None:
    """torchvision imports on a torch without its C++ extension once these two operators are declared."""
    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)


_KEPT: list[Any] = []


def _classify(model: nn.Module, size: int = 64, *, batch: int = 2, classes: int = 10) -> Foreign:
    return Foreign(model, torch.randn(batch, 3, size, size), torch.arange(batch) % classes, F.cross_entropy)


def _torchvision(name: str, size: int = 64, **kwargs: Any) -> Foreign:
    declare_vision_operators()
    import torchvision

    return _classify(torchvision.models.get_model(name, num_classes=10, **kwargs), size)


def vit_b_16() -> Foreign:
    """With a quarter of its width; depth, heads and patches are its own."""
    declare_vision_operators()
    from torchvision.models import VisionTransformer

    model = VisionTransformer(
        image_size=32, patch_size=16, num_layers=12, num_heads=12, hidden_dim=192, mlp_dim=768, num_classes=10
    )
    return _classify(model, 32)


def vgg11_bn() -> Foreign:
    """With 64 instead of 4096 features in the classifier, which takes seconds to fill."""
    declare_vision_operators()
    import torchvision

    with torch.device("meta"):
        model = torchvision.models.vgg11_bn(num_classes=10)
        model.classifier[0], model.classifier[3] = nn.Linear(512 * 49, 64), nn.Linear(64, 64)
        model.classifier[6] = nn.Linear(64, 10)
    model.to_empty(device="cpu")
    for module in model.modules():
        if next(module.parameters(recurse=False), None) is not None:
            module.reset_parameters()
    return _classify(model, 32)


def _timm(name: str, size: int = 64, **kwargs: Any) -> Foreign:
    declare_vision_operators()
    import timm

    return _classify(timm.create_model(name, num_classes=10, **kwargs), size)


def _tokens(model: nn.Module, pick: Callable[[Any], Tensor]) -> Foreign:
    """Ten-way classification of the first position of whatever `pick` takes from the model's output."""
    ids = torch.randint(0, 50, (2, 6))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return Foreign(model, inputs, torch.tensor([1, 2]), lambda out, y: F.cross_entropy(pick(out)[:, 0, :10], y))


def gpt2() -> Foreign:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=50, n_positions=16, n_embd=32, n_layer=3, n_head=2, use_cache=False)
    return _tokens(GPT2LMHeadModel(config), lambda out: out.logits)


def llama() -> Foreign:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2, use_cache=False
    )
    return _tokens(LlamaForCausalLM(config), lambda out: out.logits)


def bert() -> Foreign:
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, intermediate_size=48)
    return _tokens(BertModel(config), lambda out: out.last_hidden_state)


def t5() -> Foreign:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=50, d_model=32, d_kv=16, d_ff=48, num_layers=3, num_heads=2, use_cache=False)
    foreign = _tokens(T5ForConditionalGeneration(config), lambda out: out.logits)
    foreign.inputs["decoder_input_ids"] = torch.randint(0, 50, (2, 5))
    return foreign


def hf_vit() -> Foreign:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=2, intermediate_size=48, image_size=32, num_labels=10
    )
    images = {"pixel_values": torch.randn(2, 3, 32, 32)}
    model = ViTForImageClassification(config)
    return Foreign(model, images, torch.tensor([1, 2]), lambda out, y: F.cross_entropy(out.logits, y))


class InPlaceBlock(nn.Module):
    """conv-bn-relu-conv-bn, `out += x` and an in-place ReLU, as thousands of repositories write it."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.skip is None else self.skip(x)
        return self.relu(out)


class InPlaceResNet(nn.Module):
    """A ModuleList of in-place blocks with functional pooling, flattening and dropout."""

    def __init__(self, widths: tuple[int, ...] = (8, 8, 16, 16), classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, 1, 1)
        pairs = zip((widths[0], *widths), widths, strict=False)
        self.blocks = nn.ModuleList(InPlaceBlock(a, b, 1 + (a != b)) for a, b in pairs)
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu_(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class FunctionalResNet(nn.Module):
    """No block modules at all: the skips are written in the model's own forward."""

    def __init__(self, depth: int = 4, width: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1)
        self.first = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1) for _ in range(depth))
        self.second = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1) for _ in range(depth))
        self.fc = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for first, second in zip(self.first, self.second, strict=True):
            skip = x
            x = second(F.relu(first(F.relu(x))))
            x += skip
        return self.fc(x.mean((2, 3)))


class PreActivation(nn.Module):
    """bn-relu-conv twice plus identity, or a projection of the pre-activated tensor where the shape changes."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, 1 + (inputs != outputs), 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.project = nn.Conv2d(inputs, outputs, 1, 2, bias=False) if inputs != outputs else None

    def forward(self, x: Tensor) -> Tensor:
        active = F.relu(self.bn1(x))
        skip = x if self.project is None else self.project(active)
        return skip + self.conv2(F.relu(self.bn2(self.conv1(active))))


def preactivation() -> Foreign:
    widths = [(8, 8), (8, 8), (8, 16), (16, 16)]
    blocks = [PreActivation(a, b) for a, b in widths]
    stem, head = nn.Conv2d(3, 8, 3, 1, 1), [nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return _classify(nn.Sequential(stem, *blocks, *head, nn.Linear(16, 10)), 16)


class DoubleConv(nn.Sequential):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            *(nn.Conv2d(inputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)),
            *(nn.Conv2d(outputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)),
        )


class Up(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, 2)
        self.conv = DoubleConv(2 * outputs, outputs)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        return self.conv(torch.cat([skip, self.up(x)], 1))


class UNet(nn.Module):
    """Three levels down and up, joined by concatenation; predicts ten classes per pixel."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.inc = DoubleConv(3, width)
        self.downs = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), DoubleConv(width * 2**i, width * 2 ** (i + 1))) for i in range(3)
        )
        self.ups = nn.ModuleList(Up(width * 2 ** (i + 1), width * 2**i) for i in reversed(range(3)))
        self.outc = nn.Conv2d(width, 10, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept = [self.inc(x)]
        for down in self.downs:
            kept.append(down(kept[-1]))
        x = kept.pop()
        for up in self.ups:
            x = up(x, kept.pop())
        return self.outc(x)


class LSTMTagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 16, num_layers=2, batch_first=True)
        self.fc = nn.Linear(16, 10)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.lstm(self.embed(ids))
        return self.fc(states[:, -1])


class Twice(nn.Module):
    """One residual block called twice, a second one once, and a layer that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 1, 1)
        self.shared, self.last = PreActivation(8, 8), PreActivation(8, 8)
        self.unused = nn.Linear(3, 3)
        self.fc = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.shared(self.shared(self.stem(x)))
        return self.fc(self.last(x).mean((2, 3)))


class TwoHeads(nn.Module):
    """Keyword inputs, tensors in a dict out."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), PreActivation(8, 8), PreActivation(8, 16))
        self.aux, self.main = nn.Linear(16, 4), nn.Linear(16, 10)

    def forward(self, *, image: Tensor, scale: float = 1.0) -> dict[str, Tensor]:
        pooled = (self.body(image) * scale).mean((2, 3))
        return {"aux": self.aux(pooled), "logits": self.main(pooled)}


class Volumes(nn.Module):
    """Three-dimensional and one-dimensional convolutions, attention and LayerNorm in one post-norm net."""

    def __init__(self) -> None:
        super().__init__()
        self.volume = nn.Conv3d(1, 8, 3, padding=1)
        self.line = nn.Conv1d(8, 16, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 24, dropout=0.1, batch_first=True) for _ in range(3)
        )
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.line(self.volume(x).flatten(2)).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.fc(x.mean(1))


def mlp(depth: int = 5, width: int = 12) -> Foreign:
    hidden = [part for _ in range(depth - 1) for part in (nn.Linear(width, width), nn.Tanh())]
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, width), nn.Tanh(), *hidden, nn.Linear(width, 10))
    return _classify(model, 4, batch=5)


def unet() -> Foreign:
    targets = torch.randint(0, 10, (2, 16, 16))
    return Foreign(UNet(), torch.randn(2, 3, 16, 16), targets, F.cross_entropy)


def two_heads() -> Foreign:
    images = {"image": torch.randn(2, 3, 8, 8)}
    return Foreign(TwoHeads(), images, torch.tensor([1, 2]), lambda out, y: F.cross_entropy(out["logits"], y))


def volumes() -> Foreign:
    return Foreign(Volumes(), torch.randn(2, 1, 2, 3, 4), torch.tensor([1, 2]), F.cross_entropy)


def lstm() -> Foreign:
    return Foreign(LSTMTagger(), torch.randint(0, 50, (2, 6)), torch.tensor([1, 2]), F.cross_entropy)


MODELS: dict[str, Callable[[], Foreign]] = {
    "resnet18": lambda: _torchvision("resnet18"),
    "resnet50": lambda: _torchvision("resnet50"),
    "resnext50": lambda: _torchvision("resnext50_32x4d"),
    "vit_b_16": vit_b_16,
    "vgg11_bn": vgg11_bn,
    "densenet121": lambda: _torchvision("densenet121"),
    "mobilenet_v2": lambda: _torchvision("mobilenet_v2"),
    "swin_t": lambda: _torchvision("swin_t"),
    "resnetv2_50": lambda: _timm("resnetv2_50"),
    "convnext_atto": lambda: _timm("convnext_atto"),
    "mixer": lambda: _timm("mixer_s32_224", 64, img_size=64),
    "gpt2": gpt2,
    "llama": llama,
    "bert": bert,
    "t5": t5,
    "hf_vit": hf_vit,
    "inplace_resnet": lambda: _classify(InPlaceResNet(), 16),
    "functional_resnet": lambda: _classify(FunctionalResNet(), 8),
    "preactivation": preactivation,
    "unet": unet,
    "lstm": lstm,
    "twice": lambda: _classify(Twice(), 8),
    "two_heads": two_heads,
    "volumes": volumes,
    "mlp": mlp,
}


def build(name: str) -> Foreign:
    declare_vision_operators()
    torch.manual_seed(1)
    return MODELS[name]()


def state(model: nn.Module) -> dict[str, Any]:
    """All that must not change when somebody listens: compare two of these with `same_state`."""
    return {
        "tensors": {name: tensor.detach().clone() for name, tensor in model.state_dict(keep_vars=True).items()},
        "versions": [(id(tensor), tensor._version) for tensor in (*model.parameters(), *model.buffers())],
        "modes": [module.training for module in model.modules()],
        "requires": [parameter.requires_grad for parameter in model.parameters()],
        "gradients": [(id(p.grad), None if p.grad is None else p.grad.clone()) for p in model.parameters()],
        "hooks": [[len(v) for k, v in vars(module).items() if "hooks" in k] for module in model.modules()],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "random": torch.get_rng_state(),
    }


def same_state(one: Any, two: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(two, Tensor):
        return one.dtype == two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same_state(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same_state, one, two))
    return bool(one == two)
