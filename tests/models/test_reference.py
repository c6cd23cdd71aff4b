"""Every family against a slow, obvious computation of its own: float64 numpy, one loop over kernel taps."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leadline.models.chain import Chain
from leadline.models.family import Named
from leadline.models.names import families

Array = NDArray[np.float64]


def convolve(x: Array, w: Array, *, stride: int = 1, groups: int = 1) -> Array:
    """out[b, o, i, j] = sum_{c, u, v} w[o, c, u, v] x[b, c, s i + u - k/2, s j + v - k/2]."""
    out_channels, per_group, k, _ = w.shape
    pad = k // 2
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    size = [(n - k) // stride + 1 for n in x.shape[2:]]
    out = np.zeros((x.shape[0], out_channels, *size))
    for o in range(out_channels):
        start = (o // (out_channels // groups)) * per_group
        for c in range(per_group):
            for u in range(k):
                for v in range(k):
                    tap = x[:, start + c, u : u + stride * size[0] : stride, v : v + stride * size[1] : stride]
                    out[:, o] += w[o, c, u, v] * tap
    return out


class Network:
    """The weights of a model by path, and the layers by formula."""

    def __init__(self, model: Chain, named: Named) -> None:
        self.state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        self.linear = named.preset.get("activation") == "identity"
        self.preset = named.preset
        self.imagenet = named.preset.get("stem") == "imagenet"

    def conv(self, x: Array, path: str, *, stride: int = 1, groups: int = 1) -> Array:
        out = convolve(x, self.state[f"{path}.weight"], stride=stride, groups=groups)
        bias = self.state.get(f"{path}.bias")
        return out if bias is None else out + bias[:, None, None]

    def norm(self, x: Array, path: str) -> Array:
        mean, var, weight, bias = (
            self.state[f"{path}.{key}"][:, None, None] for key in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / np.sqrt(var + 1e-5) * weight + bias

    def act(self, x: Array) -> Array:
        return x if self.linear else np.maximum(x, 0)

    def dense(self, x: Array, path: str) -> Array:
        return x @ self.state[f"{path}.weight"].T + self.state.get(f"{path}.bias", 0.0)

    def has(self, path: str) -> bool:
        return any(name.startswith(f"{path}.") for name in self.state)

    def blocks(self) -> list[tuple[str, int]]:
        """Paths and strides of the blocks."""
        paths = dict.fromkeys(".".join(name.split(".")[:2]) for name in self.state if name.startswith("blocks."))
        halving = r"blocks\.transition\d" if "blocks.transition2" in paths else r"blocks\.stage[2-9]_block1"
        return [(path, 2 if re.fullmatch(halving, path) else 1) for path in paths]


def postactivation(net: Network, x: Array, *, groups: int = 1) -> Array:
    stride = 2 if net.imagenet else 1
    x = net.act(net.norm(net.conv(x, "stem.conv", stride=stride), "stem.norm"))
    if net.imagenet:
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        x = windows.max(axis=(4, 5))[:, :, ::2, ::2]
    for path, stride in net.blocks():
        if net.has(f"{path}.branch.conv3"):
            y = net.act(net.norm(net.conv(x, f"{path}.branch.conv1"), f"{path}.branch.norm1"))
            y = net.conv(y, f"{path}.branch.conv2", stride=stride, groups=groups)
            y = net.act(net.norm(y, f"{path}.branch.norm2"))
            y = net.norm(net.conv(y, f"{path}.branch.conv3"), f"{path}.branch.norm3")
        else:
            y = net.conv(x, f"{path}.branch.conv1", stride=stride)
            y = net.conv(net.act(net.norm(y, f"{path}.branch.norm1")), f"{path}.branch.conv2")
            y = net.norm(y, f"{path}.branch.norm2")
        if not net.preset.get("plain"):
            projects = net.has(f"{path}.skip")
            y = y + (net.norm(net.conv(x, f"{path}.skip.conv", stride=stride), f"{path}.skip.norm") if projects else x)
        x = net.act(y)
    return net.dense(x.mean((2, 3)), "head.linear")


def resnext(net: Network, x: Array) -> Array:
    return postactivation(net, x, groups=32 if net.imagenet else 8)


def diracnet(net: Network, x: Array) -> Array:
    for name in [name for name in net.state if name.endswith(".alpha")]:
        path = name.removesuffix(".alpha")
        w, alpha, beta = net.state[f"{path}.weight"], net.state[name], net.state.get(f"{path}.beta")
        made = np.zeros_like(w)
        for o in range(w.shape[0]):
            made[o] = w[o] if beta is None else beta[o] * w[o] / np.sqrt((w[o] ** 2).sum())
            if o < w.shape[1]:
                made[o, o, 1, 1] += alpha[o]
        net.state[f"{path}.weight"] = made
    net.preset = {**net.preset, "plain": True}
    return postactivation(net, x)


def preactivated(net: Network, x: Array, path: str, stride: int, *, zero_pad: bool = False) -> tuple[Array, Array]:
    """One block: its output, and the feature that its last convolution weighs."""
    shared = net.has(f"{path}.pre")
    z = net.act(net.norm(x, f"{path}.pre.norm")) if shared else x
    count = sum(re.fullmatch(rf"{path}\.branch\.feature\.conv\d\.weight", name) is not None for name in net.state) + 1
    v = z
    for i in range(1, count + 1):
        if i > 1 or not shared:
            v = net.norm(v, f"{path}.branch.feature.norm{i}")
            v = v if net.preset.get("erased") and i == count else net.act(v)
        if i < count:
            v = net.conv(v, f"{path}.branch.feature.conv{i}", stride=stride if i == 1 else 1)
    if not net.has(f"{path}.branch.last"):
        return v, v
    y = net.conv(v, f"{path}.branch.last", stride=stride if count == 1 else 1)
    if net.preset.get("plain"):
        return y, v
    if net.has(f"{path}.skip"):
        return y + net.conv(z, f"{path}.skip.conv", stride=stride), v
    if zero_pad:
        thin = z[:, :, ::stride, ::stride]
        z = np.concatenate([thin, np.zeros((len(z), y.shape[1] - z.shape[1], *thin.shape[2:]))], axis=1)
    return y + z, v


def preresnet(net: Network, x: Array, *, zero_pad: bool = False) -> Array:
    x = net.conv(x, "stem.conv")
    for path, stride in net.blocks():
        if "transition" in path:
            x = net.conv(x, path, stride=stride)
        else:
            x, _ = preactivated(net, x, path, stride, zero_pad=zero_pad)
    return net.dense(net.act(net.norm(x, "head.norm")).mean((2, 3)), "head.linear")


def shortcut_resnet(net: Network, x: Array) -> Array:
    return preresnet(net, x, zero_pad=True)


def with_ending(net: Network, x: Array) -> Array:
    ending = net.preset["ending"]
    features = [x]
    x = net.conv(x, "stem.conv")
    for path, stride in net.blocks():
        x, v = preactivated(net, x, path, stride)
        features.append(v)
    if ending == "a-resnest":
        return sum(net.dense(v.mean((2, 3)), f"head.H{i}.linear") for i, v in enumerate(features))
    x = net.norm(x, "head.norm") if ending != "resnest" else x
    x = net.act(x) if ending == "standard" else x
    return net.dense(x.mean((2, 3)), "head.linear")


def shortcut_net(net: Network, x: Array) -> Array:
    units, mid = 1 + max(int(name.split(".")[1].removeprefix("unit")) for name in net.state), net.preset.get("mid")
    for r in range(1, units):
        y = net.dense(x, f"blocks.unit{r}.branch.linear1")
        y = net.dense(np.maximum(y, 0) if mid == "relu" else y, f"blocks.unit{r}.branch.linear2")
        x = y if net.preset.get("plain") else y + x
    return x


def affine(net: Network, x: Array, path: str) -> Array:
    return net.dense(x, path) if x.ndim == 2 else net.conv(x, path)


def readout(net: Network, x: Array, path: str) -> Array:
    return net.dense(x, path) if x.ndim == 2 else net.dense(x.mean((2, 3)), f"{path}.linear")


def resnest(net: Network, x: Array) -> Array:
    features = [x]
    x = affine(net, x, "stem")
    for path, _ in net.blocks():
        features.append(np.maximum(affine(net, x, f"{path}.branch.feature.affine"), 0))
        if net.has(f"{path}.branch.last"):
            x = x + affine(net, features[-1], f"{path}.branch.last")
    if net.preset["augmented"]:
        return sum(readout(net, v, f"head.H{i}") for i, v in enumerate(features))
    return readout(net, x, "head")


def densenest(net: Network, x: Array) -> Array:
    for path, _ in net.blocks():
        x = np.concatenate([x, np.maximum(affine(net, x, f"{path}.branch.affine"), 0)], axis=1)
    return readout(net, x, "head")


REFERENCES: dict[str, Callable[[Network, Array], Any]] = {
    "densenest": densenest,
    "diracnet": diracnet,
    "preresnet": preresnet,
    "preresnet_basic": with_ending,
    "procresnet": preresnet,
    "resnest": resnest,
    "resnet": postactivation,
    "resnext": resnext,
    "shortcut_net": shortcut_net,
    "shortcut_resnet": shortcut_resnet,
    "wrn": with_ending,
}


def test_every_family_has_a_reference() -> None:
    assert set(REFERENCES) == set(families())


def test_forward_is_the_obvious_one(named: Named, model: Chain, batch: Tensor) -> None:
    for name, buffer in model.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.uniform_(0.5, 1.5)
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    file = next(file for file, family in families().items() if family is named.family)
    with torch.no_grad():
        ours = model.eval()(batch).numpy()
    slow = REFERENCES[file](Network(model, named), batch.numpy())
    np.testing.assert_allclose(ours, slow, rtol=1e-9, atol=1e-10 * np.abs(slow).max())
