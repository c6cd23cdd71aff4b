"""Muon for models with convolutions: `torch.optim.Muon` refuses kernels, here each is trained as the matrix it is."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.optim import Optimizer

from leadline.core.errors import UsageError

Group = dict[str, Any]


def divided(model: nn.Module) -> tuple[list[Group], list[nn.Parameter]]:
    """Parameter groups for `Muon`, and what is left for AdamW, as Muon's author advises.

    Muon trains hidden matrices and kernels; embeddings, the last layer, gains, biases, and kernels of one row
    (depthwise convolutions) are left. The kernel of a convolution in g groups is g matrices and has `matrices` g.

    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, groups=2), nn.Flatten(), nn.Linear(8, 10))
    >>> hidden, others = divided(net)
    >>> [(group["matrices"], len(group["params"])) for group in hidden], len(others)
    ([(1, 1), (2, 1)], 4)
    """
    left = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding | nn.EmbeddingBag)}
    matrices = [module for module in model.modules() if any(p.ndim > 1 for p in module.parameters(recurse=False))]
    left |= {id(parameter) for module in matrices[-1:] for parameter in module.parameters(recurse=False)}
    hidden: dict[int, list[nn.Parameter]] = {}
    for module in matrices:
        count = module.groups if isinstance(module, _ConvNd) else 1
        for parameter in module.parameters(recurse=False):
            if parameter.ndim > 1 and parameter.requires_grad and len(parameter) > count and id(parameter) not in left:
                left.add(id(parameter))
                hidden.setdefault(count, []).append(parameter)
    taken = {id(parameter) for found in hidden.values() for parameter in found}
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
    return [{"params": found, "matrices": count} for count, found in sorted(hidden.items())], others


class Muon(Optimizer):
    """`torch.optim.Muon`, kernels included: one of shape (out, in, ...) is stepped as the matrix (out, in ...).

    `params` and `options` are those of `torch.optim.Muon`. A group with `matrices` g has kernels that are g matrices
    one below another. What is trained are the kernels themselves, so schedulers, loss scalers, checkpoints,
    DistributedDataParallel and `Procrustes.attach` find what they expect.
    """

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], **options: Any) -> None:
        self._options = options
        super().__init__(list(params), {"matrices": 1})  # type: ignore[arg-type]
        self._inner = self._of_matrices()

    def add_param_group(self, param_group: Group) -> None:
        super().add_param_group(param_group)
        self._inner = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of every kernel that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._inner = self._inner or self._of_matrices()
        for group, inner in zip(self.param_groups, self._inner.param_groups, strict=True):
            inner.update(_options(group))
            matrices = iter(inner["params"])
            for kernel in group["params"]:
                self._lend(kernel, [next(matrices) for _ in range(group["matrices"])])
        self._inner.step()
        return loss

    def _of_matrices(self) -> Any:
        """torch's Muon over the matrices of all kernels; what its options are by default it says itself."""
        if not hasattr(torch.optim, "Muon"):
            raise UsageError(f"torch {torch.__version__} has no Muon; expected torch 2.9 or newer")
        groups = [
            _options(group) | {"params": [row for kernel in group["params"] for row in _cut(kernel, group["matrices"])]}
            for group in self.param_groups
        ]
        inner = torch.optim.Muon(groups, **self._options)
        for group, found in zip(self.param_groups, inner.param_groups, strict=True):
            group.update(_options(found))
        return inner

    def _lend(self, kernel: Tensor, matrices: Sequence[Tensor]) -> None:
        """Gives matrices the memory of a kernel, of its gradient and of its momentum."""
        count = len(matrices)
        for matrix, row in zip(matrices, _cut(kernel.detach(), count), strict=True):
            matrix.grad, matrix.data = None, row
        if kernel.grad is None:
            return
        former = self.state[kernel].get("momentum_buffer")
        if former is None or former.stride() != kernel.stride():
            buffer = torch.zeros_like(kernel) if former is None else torch.empty_like(kernel).copy_(former)
            self.state[kernel]["momentum_buffer"] = buffer
        momenta = _rows(self.state[kernel]["momentum_buffer"], count, like=kernel)
        for matrix, gradient, momentum in zip(matrices, _rows(kernel.grad, count, like=kernel), momenta, strict=True):
            matrix.grad = gradient
            self._inner.state[matrix] = {"momentum_buffer": momentum}


def _options(group: Group) -> Group:
    return {name: value for name, value in group.items() if name not in ("params", "matrices")}


def _cut(kernel: Tensor, count: int) -> tuple[Tensor, ...]:
    """The matrices that a kernel is, in its own memory."""
    shape = tuple(kernel.shape)
    if kernel.ndim < 2 or len(kernel) % count:
        raise UsageError(f"expected matrices and kernels for Muon, in {count} equal parts; got the shape {shape}")
    matrices = _rows(kernel.detach(), count, like=kernel)
    if matrices[0].data_ptr() != kernel.data_ptr():
        raise UsageError(f"a kernel of shape {shape} and strides {kernel.stride()} is no matrix in memory")
    return matrices


def _rows(tensor: Tensor, count: int, *, like: Tensor) -> tuple[Tensor, ...]:
    """(out, in, ...) as `count` matrices (out / count, in ...) with the columns in the order of the memory of `like`.

    In channels_last memory that is another order, which changes nothing: Muon's step turns with the columns.
    """
    if not like.is_contiguous():
        tensor = tensor.movedim(1, -1)
    return tuple(tensor.flatten(1).chunk(count))
