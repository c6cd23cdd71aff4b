"""Batch norm and convolution whose second derivatives cost little more than their first.

torch differentiates the backward passes of both in many small steps. Inside `SecondOrder()` a forward pass uses the
same kernels, but its backward passes are closed: a Hessian-vector product takes four convolutions per convolution,
and two sums and two affine maps per norm. Batch statistics do not move the running ones here.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten
Found = tuple[Tensor | None, ...]


class SecondOrder(TorchFunctionMode):
    """Inside, convolutions and batch norms are the ones below; what they do not cover and autocast stay torch's."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        own = OWN.get(func)
        if own and args and torch.is_grad_enabled() and not torch.is_autocast_enabled(args[0].device.type):
            found = own(*args, **(kwargs or {}))
            if found is not None:
                return found
        return func(*args, **(kwargs or {}))


def _conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    if isinstance(padding, str) or x.ndim != weight.ndim:
        return None
    space = weight.ndim - 2
    stride, padding, dilation = ([v] * space if isinstance(v, int) else list(v) for v in (stride, padding, dilation))
    return _Conv.apply(x, weight, bias, (stride, padding, dilation, False, [0] * space, groups))  # type: ignore[no-any-return, no-untyped-call]


class _Conv(torch.autograd.Function):
    """y = weight * x + bias."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, geometry: tuple[Any, ...]) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.geometry = geometry
        return aten.convolution(x, weight, bias, *geometry)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Found:
        found: Found = _ConvBackward.apply(g, *ctx.saved_tensors, ctx.geometry, ctx.needs_input_grad[:3])  # type: ignore[no-untyped-call]
        return *found, None


class _ConvBackward(torch.autograd.Function):
    """(gx, gw, gb) of a convolution; with cotangents u, v, q for them, all maps are convolutions again."""

    @staticmethod
    def forward(
        ctx: Any, g: Tensor, x: Tensor, weight: Tensor, geometry: tuple[Any, ...], wanted: tuple[bool, ...]
    ) -> Any:
        ctx.save_for_backward(g, x, weight)
        ctx.geometry, ctx.wanted = geometry, wanted
        return aten.convolution_backward(g, x, weight, [weight.shape[0]], *geometry, wanted)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, u: Tensor, v: Tensor, q: Tensor) -> Found:
        g, x, weight = ctx.saved_tensors
        to_x, to_weight, to_bias = ctx.wanted
        slope = torch.zeros_like(g)
        from_x = from_weight = None
        if to_weight:
            slope = aten.convolution(x, v, q if to_bias else None, *ctx.geometry)
        elif to_bias:
            slope = slope + _across(q, g)
        if to_x:
            slope = slope + aten.convolution(u, weight, None, *ctx.geometry)
            from_weight = aten.convolution_backward(g, u, weight, None, *ctx.geometry, [False, True, False])[1]
        if to_x and to_weight:
            from_x = aten.convolution_backward(g, x, v, None, *ctx.geometry, [True, False, False])[0]
        return slope, from_x, from_weight, None, None


def _batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    *,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    eps: float = 1e-5,
    **_: Any,
) -> Tensor | None:
    if weight is None or bias is None or not x.requires_grad:
        return None
    return _Norm.apply(x, weight, bias, None if training else (running_mean, running_var), eps)  # type: ignore[no-any-return, no-untyped-call]


class _Norm(torch.autograd.Function):
    """y = weight xh + bias, xh = (x - mu) r, with the statistics of the batch or given ones."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, given: tuple[Tensor, Tensor] | None, eps: float
    ) -> Any:
        mean, var = given or (None, None)
        y, mu, r = torch.native_batch_norm(x, weight, bias, mean, var, given is None, 0.0, eps)
        if given:
            mu, r = given[0].clone(), (given[1] + eps).rsqrt()
        ctx.save_for_backward(x, weight, mu, r)
        ctx.batch = given is None
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Found:
        found: Found = _NormBackward.apply(g, *ctx.saved_tensors, ctx.batch)  # type: ignore[no-untyped-call]
        return *found, None, None


class _NormBackward(torch.autograd.Function):
    """gx = r w (g - t m(g) - t xh m(g xh)), gw = sum g xh, gb = sum g; t = 1 for batch statistics, else 0.

    m() is the mean over batch and space. With cotangents u, v, q the derivative is that of
    psi + v gw + q gb,  psi = w r (sum u g - t n m(u) m(g) - t n m(u xh) m(g xh)),
    where d xh / d x = r (h - t m(h) - t xh m(h xh)) and d r / d x = -t r^2 xh / n.
    """

    @staticmethod
    def forward(ctx: Any, g: Tensor, x: Tensor, weight: Tensor, mu: Tensor, r: Tensor, batch: bool) -> Any:
        found = aten.native_batch_norm_backward(g, x, weight, mu, r**-2, mu, r, batch, 0.0, [True, True, True])
        ctx.save_for_backward(g, x, weight, mu, r, found[1], found[2])
        ctx.batch = batch
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, u: Tensor, v: Tensor, q: Tensor) -> Found:
        g, x, w, mu, r, gw, gb = ctx.saved_tensors
        t, n = float(ctx.batch), x.numel() / len(mu)
        mg, mgx = t * gb / n, t * gw / n
        sum_ux, sum_u = _sums(u, x, mu, r)
        sum_ug, _ = _sums(u, g, torch.zeros_like(mu), torch.ones_like(r))
        mu_u, mu_ux = t * sum_u / n, t * sum_ux / n
        from_w = r * (sum_ug - n * (mu_u * mg + mu_ux * mgx))
        pull = v - r * w * mu_ux  # what multiplies xh in the slope, and g in h
        slope = _affine(u, r * w, x, pull * r, q - r * w * mu_u - pull * r * mu)
        h_mean = pull * mg - r * w * mu_u * mgx
        h_xh = pull * mgx - r * w * mu_ux * mgx
        c = -r * (h_xh + t * w * from_w / n)  # of xh in what reaches x
        from_x = g * _across(r * pull, g)
        if ctx.batch:
            from_x = from_x + _affine(u, -r * r * w * mgx, x, c * r, -r * h_mean - c * r * mu)
        return slope, from_x, from_w, None, None, None


def _sums(u: Tensor, x: Tensor, mu: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """(sum u (x - mu) r, sum u) per channel in one pass."""
    found = aten.native_batch_norm_backward(u, x, None, mu, r**-2, mu, r, False, 0.0, [False, True, True])
    return found[1], found[2]


def _affine(u: Tensor, a: Tensor, x: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a u + b x + c with a, b, c per channel."""
    return torch.addcmul(_across(c, x), x, _across(b, x)).addcmul_(u, _across(a, x))


def _across(value: Tensor, like: Tensor) -> Tensor:
    return value.reshape(*value.shape, *[1] * (like.ndim - 2))


OWN: dict[Any, Callable[..., Tensor | None]] = {
    functional.batch_norm: _batch_norm,
    torch.conv1d: _conv,
    torch.conv2d: _conv,
    torch.conv3d: _conv,
}
