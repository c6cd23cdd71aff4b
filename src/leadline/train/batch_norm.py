"""Batch norm over chosen shares of a batch: one on each process, several on one, or one over several processes.

With k shares, share j is rows j, j + k, j + 2k, ... of the whole batch, which is also how W processes divide it. So a
process holds k / W whole shares, or W / k processes hold one together; W = 1 gives the same numbers as any other W.
Running statistics are those of share 0, as DataParallel and DistributedDataParallel keep them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from leadline.core.errors import UsageError
from leadline.train.processes import rank, world


@dataclass(frozen=True)
class Shares:
    """How many shares the batch of this process has, or the group of processes that have one together."""

    here: int = 1
    group: Any = None

    def __deepcopy__(self, _: object) -> "Shares":
        return self


class _InShares(_BatchNorm):
    """What the batch norms below have in common; `alone` is how one process that has the whole batch cuts it."""

    shares: Shares
    alone: Shares
    is_alone: bool
    # batch norms without weights or running statistics are refused by `share`
    weight: nn.Parameter
    bias: nn.Parameter
    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def forward(self, x: Tensor) -> Tensor:
        shares = self.alone if self.is_alone else self.shares
        if not self.training or (shares.group is None and (shares.here == 1 or len(x) % shares.here)):
            return super().forward(x)
        self._check_input_dim(x)  # type: ignore[no-untyped-call]
        self.num_batches_tracked.add_(1)
        return self._apart(x, shares.here) if shares.group is None else self._together(x, shares.group)

    def _apart(self, x: Tensor, count: int) -> Tensor:
        """Each share's channels stand beside those of the others: (n, c, ...) is (n / k, k c, ...)."""
        n, c, *rest = x.shape
        weight, bias, mean, var = (
            given.repeat(count) for given in (self.weight, self.bias, self.running_mean, self.running_var)
        )
        beside = x.reshape(n // count, count * c, *rest)
        y = F.batch_norm(beside, mean, var, weight, bias, True, self.momentum or 0.0, self.eps)
        self.running_mean.copy_(mean[:c])
        self.running_var.copy_(var[:c])
        return y.reshape(x.shape)

    def _together(self, x: Tensor, group: Any) -> Tensor:
        y, mean, var = _Together.apply(x, self.weight, self.bias, self.eps, group)  # type: ignore[no-untyped-call]
        count = x.numel() // x.shape[1] * distributed.get_world_size(group)
        momentum = self.momentum or 0.0
        self.running_mean.lerp_(mean.to(self.running_mean), momentum)
        self.running_var.lerp_((var * (count / (count - 1))).to(self.running_var), momentum)
        found: Tensor = y
        return found


class SharedNorm1d(_InShares, nn.BatchNorm1d): ...


class SharedNorm2d(_InShares, nn.BatchNorm2d): ...


class SharedNorm3d(_InShares, nn.BatchNorm3d): ...


KINDS: dict[type[nn.Module], type[_InShares]] = {
    nn.BatchNorm1d: SharedNorm1d,
    nn.BatchNorm2d: SharedNorm2d,
    nn.BatchNorm3d: SharedNorm3d,
}


class _Together(torch.autograd.Function):
    """y = w (x - m) / s + b with the mean m and the deviation s of x over the batches of all processes of a group.

    With z = (x - m) / s and means over all of these batches: dx = w / s (dy - mean(dy) - z mean(z dy)).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float, group: Any) -> tuple[Tensor, ...]:
        values = x.to(torch.promote_types(x.dtype, torch.float32))
        var, mean = torch.var_mean(values, _others(x), correction=0)
        mean, var = mean.double(), var.double()
        mean, square = _mean(torch.stack([mean, var + mean.square()]), group)
        var = square - mean.square()
        scale = (var + eps).rsqrt()
        slope = weight * scale
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.group = group
        y = values * _wide(slope, values) + _wide(bias - mean * slope, values)
        ctx.mark_non_differentiable(mean, var)
        return y.to(x.dtype), mean, var

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale = ctx.saved_tensors
        dy = dy.to(torch.promote_types(x.dtype, torch.float32))
        z = (x.to(dy.dtype) - _wide(mean, dy)) * _wide(scale, dy)
        bias_grad, weight_grad = dy.sum(_others(x)), (dy * z).sum(_others(x))
        count = x.numel() // x.shape[1]
        mean_dy, mean_zdy = _mean(torch.stack([bias_grad, weight_grad]).double() / count, ctx.group)
        dx = _wide(weight * scale, dy) * (dy - _wide(mean_dy, dy) - z * _wide(mean_zdy, dy))
        return dx.to(x.dtype), weight_grad.to(weight.dtype), bias_grad.to(weight.dtype), None, None


def _others(x: Tensor) -> list[int]:
    """Every axis but that of the channels."""
    return [0, *range(2, x.dim())]


def _wide(channels: Tensor, like: Tensor) -> Tensor:
    return channels.to(like.dtype).view(1, -1, *(1 for _ in range(like.dim() - 2)))


def _mean(values: Tensor, group: Any) -> Tensor:
    distributed.all_reduce(values, group=group)
    return values / distributed.get_world_size(group)


def share(model: nn.Module, count: int) -> None:
    """Has every batch norm of the model take its statistics over `count` shares of the whole batch of all processes."""
    if count == 1 and world() == 1:
        return
    shares = _here(count)
    for name, module in model.named_modules():
        if (kind := KINDS.get(type(module))) is not None:
            if not (module.affine and module.track_running_stats and module.momentum is not None):
                raise UsageError(f"{name}: expected a batch norm with weights, running statistics and a momentum")
            module.__class__ = kind
            module.shares, module.alone, module.is_alone = shares, Shares(count), False


def _here(count: int) -> Shares:
    processes = world()
    if count % processes == 0:
        return Shares(count // processes)
    if processes % count:
        raise UsageError(
            f"local_norm {count} does not go with {processes} processes: expected a multiple or a divisor of that"
        )
    if count == 1:
        return Shares(group=distributed.group.WORLD)
    groups = [distributed.new_group(list(range(first, processes, count))) for first in range(count)]
    return Shares(group=groups[rank() % count])


@contextmanager
def alone(model: nn.Module) -> Iterator[None]:
    """Inside, every process has the whole batch before it, and norms cut it as one process alone would."""
    norms = [module for module in model.modules() if isinstance(module, _InShares)]
    former = [norm.is_alone for norm in norms]
    for norm in norms:
        norm.is_alone = True
    try:
        yield
    finally:
        for norm, was in zip(norms, former, strict=True):
            norm.is_alone = was
