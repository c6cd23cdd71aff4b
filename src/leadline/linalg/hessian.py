"""Exact second derivatives of a scalar: the dense Hessian, and Hessian and Gauss-Newton products on a kept graph.

Products keep the graph of one forward and one backward pass and go through it backwards again for every vector:
H v = d(g . v)/d theta, about two gradients each. A batch-normalised net differs between its two modes and a forward
pass in train mode moves running statistics, so compute the loss inside `curvature_graph(module)` and pass on the mode
it gives: nothing moves, every number made from the operator states its mode, and products are faster.

    with curvature_graph(model) as mode:
        loss = loss_fn(model(x), y)
    operator = hessian_operator(loss, list(model.parameters()), mode=mode)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from leadline.core.errors import UsageError
from leadline.linalg import memory
from leadline.linalg.conditioning import Condition, condition, rounding_tolerance
from leadline.linalg.second_order import SecondOrder


@dataclass(frozen=True, kw_only=True)
class CurvatureOperator:
    """v -> H v (`kind` "hessian") or G v ("gauss-newton") for a flat vector of `size`, or for every row of a matrix."""

    product: Callable[[Tensor], Tensor]
    kind: str
    size: int
    value: float
    mode: str
    dtype: torch.dtype
    device: torch.device

    def __call__(self, vector: Tensor) -> Tensor:
        if vector.shape[-1] != self.size or vector.ndim > 2:
            raise UsageError(f"expected a vector of {self.size} entries or rows of them; got {tuple(vector.shape)}")
        return self.product(vector.to(self.device, self.dtype))


@contextmanager
def untouched_buffers(module: nn.Module) -> Iterator[str]:
    """Inside, a forward pass works on copies of the buffers (running statistics); yields "train", "eval" or "mixed"."""
    owners = [(owner, dict(owner._buffers)) for owner in module.modules()]
    training = {owner.training for owner, _ in owners}
    for owner, buffers in owners:
        owner._buffers.update({name: None if b is None else b.clone() for name, b in buffers.items()})
    try:
        yield "mixed" if len(training) > 1 else "train" if True in training else "eval"
    finally:
        for owner, buffers in owners:
            owner._buffers.update(buffers)


@contextmanager
def curvature_graph(module: nn.Module) -> Iterator[str]:
    """For the forward pass of a loss to be differentiated twice: buffers untouched, second derivatives cheap."""
    with untouched_buffers(module) as mode, SecondOrder():
        yield mode


def hessian_operator(loss: Tensor, params: Sequence[Tensor], *, mode: str = "not stated") -> CurvatureOperator:
    """Hessian products for a scalar `loss` already computed from `params`; its graph is kept as long as the result."""
    (operator,) = hessian_blocks(loss, {"": params}, mode=mode).values()
    return operator


def hessian_blocks(
    loss: Tensor, groups: Mapping[str, Sequence[Tensor]], *, mode: str = "not stated"
) -> dict[str, CurvatureOperator]:
    """One operator per group of parameters, for the diagonal block of the Hessian; one backward pass for all."""
    every = [param for params in groups.values() for param in params]
    _check(loss, every)
    grads = iter(torch.autograd.grad(loss, every, create_graph=True, materialize_grads=True))
    blocks = {}
    for name, params in groups.items():
        wanted = list(params)
        product = _HessianProduct([next(grads) for _ in wanted], wanted)
        blocks[name] = _operator(product, "hessian", loss, wanted, mode)
    return blocks


def gauss_newton_operator(
    loss: Tensor, outputs: Tensor, params: Sequence[Tensor], *, mode: str = "not stated"
) -> CurvatureOperator:
    """G v = J^T (d^2 loss / d outputs^2) J v for a `loss` that depends on `params` through `outputs` alone."""
    params = list(params)
    _check(loss, params)
    product = _GaussNewtonProduct(loss, outputs, params)
    return _operator(product, "gauss-newton", loss, params, mode)


class _HessianProduct:
    """H v = d(g . v) / d theta."""

    def __init__(self, grads: Sequence[Tensor], params: Sequence[Tensor]) -> None:
        self.grads, self.params = grads, params

    def __call__(self, vector: Tensor) -> Tensor:
        return _join(_pull(self.grads, self.params, _split(vector, self.params), vector.ndim == 2), vector.ndim - 1)


class _GaussNewtonProduct:
    """J v is read off the graph of u -> J^T u, which is linear in u; then the curvature of the loss, then J^T."""

    def __init__(self, loss: Tensor, outputs: Tensor, params: Sequence[Tensor]) -> None:
        self.outputs, self.params = outputs, params
        self.dual = torch.zeros_like(outputs, requires_grad=True)
        self.pulled = torch.autograd.grad(outputs, params, self.dual, create_graph=True, materialize_grads=True)
        self.slope = torch.autograd.grad(loss, outputs, create_graph=True)

    def __call__(self, vector: Tensor) -> Tensor:
        batched = vector.ndim == 2
        pushed = _pull(self.pulled, [self.dual], _split(vector, self.params), batched)
        curved = _pull(self.slope, [self.outputs], pushed, batched)
        return _join(_pull([self.outputs], self.params, curved, batched), vector.ndim - 1)


def _pull(of: Sequence[Tensor], to: Sequence[Tensor], cotangents: Sequence[Tensor], batched: bool) -> list[Tensor]:
    """sum of cotangent^T d of / d to, zero where there is no path; with `batched` for every row of the cotangents."""
    lead = cotangents[0].shape[:1] if batched else ()
    chosen = [(o, c) for o, c in zip(of, cotangents, strict=True) if o.requires_grad]
    found: Sequence[Tensor | None] = [None] * len(to)
    if chosen:
        heads, vectors = zip(*chosen, strict=True)
        found = torch.autograd.grad(heads, to, vectors, retain_graph=True, allow_unused=True, is_grads_batched=batched)
    return [t.new_zeros(*lead, *t.shape) if g is None else g for g, t in zip(found, to, strict=True)]


def _split(vector: Tensor, params: Sequence[Tensor]) -> list[Tensor]:
    lead = vector.shape[:-1]
    parts = torch.split(vector, [param.numel() for param in params], dim=-1)
    return [part.reshape((*lead, *param.shape)) for part, param in zip(parts, params, strict=True)]


def _join(parts: Sequence[Tensor], lead: int) -> Tensor:
    return torch.cat([part.flatten(lead) if part.ndim > lead else part[..., None] for part in parts], dim=-1)


def _operator(
    product: Callable[[Tensor], Tensor], kind: str, loss: Tensor, params: Sequence[Tensor], mode: str
) -> CurvatureOperator:
    return CurvatureOperator(
        product=product,
        kind=kind,
        size=sum(param.numel() for param in params),
        value=float(loss.detach()),
        mode=mode,
        dtype=params[0].dtype,
        device=params[0].device,
    )


def _check(loss: Tensor, params: Sequence[Tensor]) -> None:
    if not sum(param.numel() for param in params):
        raise UsageError("a Hessian needs at least one parameter; got none")
    dtypes = sorted({str(param.dtype).removeprefix("torch.") for param in params})
    if len(dtypes) > 1 or not params[0].is_floating_point():
        raise UsageError(f"expected parameters of one floating-point dtype; got {', '.join(dtypes)}")
    if loss.numel() != 1:
        raise UsageError(f"expected a scalar loss; got shape {tuple(loss.shape)}")
    if not loss.requires_grad:
        raise UsageError("the loss does not depend on the parameters through a graph; compute it with gradients on")


def dense(operator: CurvatureOperator, *, chunk: int = 64) -> Tensor:
    """The matrix of an operator, column by column, `chunk` at a time, symmetrised; its memory is asked for first."""
    _require_dense(operator.size, operator.dtype, operator.device)
    matrix = torch.empty(operator.size, operator.size, dtype=operator.dtype, device=operator.device)
    for start in range(0, operator.size, chunk):
        rows = torch.arange(start, min(start + chunk, operator.size), device=operator.device)
        units = torch.zeros(len(rows), operator.size, dtype=operator.dtype, device=operator.device)
        matrix[rows] = operator(units.scatter_(1, rows[:, None], 1))
    return (matrix + matrix.T).div_(2)


def dense_hessian(function: Callable[..., Tensor], params: Tensor | Sequence[Tensor], *, chunk: int = 64) -> Tensor:
    """The exact Hessian of the scalar `function(*params)` at `params`, flattened in their order; they are left alone.

    >>> dense_hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    given = [params] if isinstance(params, Tensor) else list(params)
    if given:
        _require_dense(sum(param.numel() for param in given), given[0].dtype, given[0].device)
    if not all(param.is_floating_point() for param in given):
        raise UsageError(f"expected floating-point parameters; got {', '.join(str(param.dtype) for param in given)}")
    leaves = [param.detach().clone().requires_grad_() for param in given]
    with torch.enable_grad():
        return dense(hessian_operator(function(*leaves), leaves), chunk=chunk)


def _require_dense(size: int, dtype: torch.dtype, device: torch.device) -> None:
    memory.require(
        3 * size * size * torch.empty(0, dtype=dtype).element_size(),  # the matrix, its transpose's sum, eigenvalues
        f"a dense Hessian of {size:,} parameters in {str(dtype).removeprefix('torch.')}",
        instead="take a block, or products with lanczos.extremes and lanczos.density",
        device=device,
    )


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """All eigenvalues of a symmetric matrix, ascending, and what Li et al. read off them.

    `index` is the share of negative eigenvalues, `ratio10` = |lambda|_max / |lambda|_(0.1) with the 10th percentile of
    the absolute values (linear interpolation), `zeros` how many are not told from zero, that is
    |lambda| <= tolerance |lambda|_max, and count as neither sign. `condition` is |lambda|_max / |lambda|_min.
    """

    eigenvalues: Tensor
    index: float
    ratio10: float
    largest: float
    percentile10: float
    zeros: int
    condition: Condition
    tolerance: float
    dtype: str
    mode: str
    note: str


def spectrum(matrix: Tensor, *, mode: str = "not stated") -> Spectrum:
    """The spectrum of a symmetric matrix; a matrix with NaN or inf gives a reading of NaN that says so."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.numel():
        raise UsageError(f"expected a square matrix; got shape {tuple(matrix.shape)}")
    shape = (matrix.shape[0], matrix.shape[0])
    finite = bool(torch.isfinite(matrix).all())
    values = torch.linalg.eigvalsh(matrix.detach()) if finite else matrix.new_full(shape[:1], torch.nan)
    sizes = values.abs()
    largest, low = float(sizes.max()), float(torch.quantile(sizes, 0.1)) if finite else torch.nan
    tol = rounding_tolerance(shape, matrix.dtype)
    judged = condition(sizes, shape=shape, dtype=matrix.dtype)
    return Spectrum(
        eigenvalues=values,
        index=float((values < -tol * largest).double().mean()) if finite else torch.nan,
        ratio10=(largest / low if low else torch.inf if largest else torch.nan) if finite else torch.nan,
        largest=largest,
        percentile10=low,
        zeros=judged.lost,
        condition=judged,
        tolerance=tol,
        dtype=judged.dtype,
        mode=mode,
        note=judged.note,
    )
