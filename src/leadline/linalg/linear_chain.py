"""Loss, gradient, Hessian and gradient descent of linear n-shortcut nets from the second moments of the data alone.

y = prod_r (prod_l W^{r,l} + I) x with square W (Li et al., eq. (2)); `shortcut` n >= 1 is the number of layers per
unit, n = 0 the plain product without I. The loss 1/(2m) sum |y - W x|^2 sees the data through Sigma_XX, Sigma_YX and
tr Sigma_YY only, so full-batch training is d x d algebra, whatever m. All functions are batched: weights are
(nets ..., layers, d, d) in the order of application, vec(W) is row-major, layer by layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.linalg.conditioning import Condition, matrix_condition


@dataclass(frozen=True)
class Moments:
    """Sigma_XX = E[x x^T], Sigma_YX = E[y x^T] and tr Sigma_YY = E[|y|^2] in float64."""

    xx: Tensor
    yx: Tensor
    yy: Tensor

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> "Moments":
        """From samples in rows, (m, d) each."""
        if x.ndim != 2 or x.shape != y.shape or not x.numel():
            raise UsageError(f"expected samples x and y of one shape (m, d); got {tuple(x.shape)} and {tuple(y.shape)}")
        x, y = x.double(), y.double()
        return cls(x.T @ x / len(x), y.T @ x / len(x), (y * y).sum() / len(x))

    @property
    def lowest_loss(self) -> Tensor:
        """min over all W of the loss: (tr Sigma_YY - tr(Sigma_YX Sigma_XX^+ Sigma_YX^T)) / 2."""
        best: Tensor = self.yx @ torch.linalg.pinv(self.xx, hermitian=True)
        return (self.yy - (best * self.yx).sum((-2, -1))) / 2

    @property
    def distance(self) -> Tensor:
        """Sigma_XX - Sigma_YX, the gradient at W = I: all that Theorem 2 needs of the data for n = 2."""
        return self.xx - self.yx


def pad(chains: Sequence[Tensor], *, shortcut: int) -> tuple[Tensor, Tensor]:
    """Nets of several depths as one batch: (weights, real), padded with layers that do nothing; real (nets, layers).

    Pass `real` on, so that the padding stays as it is: it has no gradient, and its rows of the Hessian are zero.
    """
    if not chains or len({chain.shape[1:] for chain in chains}) > 1:
        raise UsageError(f"expected chains (layers, d, d) of one width; got {[tuple(chain.shape) for chain in chains]}")
    depth, width = max(len(chain) for chain in chains), chains[0].shape[-1]
    idle = torch.zeros(width, width) if shortcut else torch.eye(width)
    weights = torch.stack([torch.cat([c, idle.to(c).expand(depth - len(c), width, width)]) for c in chains])
    real = torch.arange(depth) < torch.tensor([[len(chain)] for chain in chains])
    return weights, real.to(weights.device)


def end_to_end(weights: Tensor, *, shortcut: int) -> Tensor:
    """W = prod_r (prod_l W^{r,l} + I)."""
    return _forward(weights, shortcut)[1]


def loss(weights: Tensor, moments: Moments, *, shortcut: int) -> Tensor:
    """tr(W Sigma_XX W^T) / 2 - tr(W Sigma_YX^T) + tr Sigma_YY / 2, one number per net."""
    return _loss(end_to_end(weights, shortcut=shortcut), moments)


def loss_and_gradient(
    weights: Tensor, moments: Moments, *, shortcut: int, real: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The loss of every net and its gradient, A_i^T (W Sigma_XX - Sigma_YX) B_i^T for W = ... A_i W_i B_i ... ."""
    inputs, product = _forward(weights, shortcut)
    slope = product @ moments.xx.to(product) - moments.yx.to(product)
    grads = torch.empty_like(weights)
    skip = slope
    for layer in reversed(range(weights.shape[-3])):
        if shortcut and (layer + 1) % shortcut == 0:
            skip = slope
        grads[..., layer, :, :] = slope @ inputs[layer].mT
        slope = weights[..., layer, :, :].mT @ slope
        if shortcut and layer % shortcut == 0:
            slope = slope + skip
    return _loss(product, moments), grads if real is None else grads * real[..., None, None]


@dataclass(frozen=True)
class Descent:
    """Weights after gradient descent, the loss before every step and after the last (steps + 1, nets ...)."""

    weights: Tensor
    losses: Tensor

    @property
    def diverged(self) -> Tensor:
        return ~torch.isfinite(self.losses[-1])


def descend(
    weights: Tensor,
    moments: Moments,
    *,
    shortcut: int,
    rate: float | Tensor,
    steps: int,
    real: Tensor | None = None,
) -> Descent:
    """`steps` of full-batch gradient descent, every net of the batch with its own `rate` if that is a tensor."""
    step_size = torch.as_tensor(rate, dtype=weights.dtype, device=weights.device)[..., None, None, None]
    losses = []
    for _ in range(steps):
        value, grads = loss_and_gradient(weights, moments, shortcut=shortcut, real=real)
        losses.append(value)
        weights = weights - step_size * grads
    return Descent(weights, torch.stack([*losses, loss(weights, moments, shortcut=shortcut)]))


def hessian(weights: Tensor, moments: Moments, *, shortcut: int, real: Tensor | None = None) -> Tensor:
    """The exact Hessian (nets ..., P, P), P = layers d^2, of the loss in all weights.

    With W = ... A_i W_i C_ij W_j B_j ... (C_ij from the output of layer j to the input of layer i > j) and
    R = W Sigma_XX - Sigma_YX, in the indices W_i[p, a] and W_j[b, q]:
    H = (A_i^T A_j)[p, b] (B_i Sigma_XX B_j^T)[a, q] + (A_i^T R B_j^T)[p, q] C_ij[a, b], for i < j by symmetry.
    """
    layers, width = _checked(weights, shortcut)
    between, after, before, product = _paths(weights, shortcut)
    xx, yx = moments.xx.to(product), moments.yx.to(product)
    c = between.transpose(-3, -2).flatten(-4, -3).flatten(-2)  # (i a, j b), zero for j >= i
    a = after.transpose(-3, -2).flatten(-2)  # (output, i p)
    b = before.flatten(-3, -2)  # (i a, input)
    later = c.new_ones(layers, layers).tril(-1).repeat_interleave(width, 0).repeat_interleave(width, 1)
    m = a.mT @ (product @ xx - yx) @ b.mT * later  # (i p, j q), zero for j >= i
    outer, inner, left, right = (
        block.reshape(*block.shape[:-2], layers, width, layers, width)
        for block in (a.mT @ a, b @ xx @ b.mT, m + c.mT, c + m.mT)
    )
    result = outer[..., :, :, None, :, :, None] * inner[..., :, None, :, :, None, :]  # i, p, a, j, b, q
    result.addcmul_(left[..., :, :, None, :, None, :], right[..., :, None, :, :, :, None])
    flat = result.flatten(-6, -4).flatten(-3)
    if real is None:
        return flat
    mask = real.repeat_interleave(width * width, dim=-1)
    return flat * mask[..., :, None] * mask[..., None, :]


def zero_hessian(moments: Moments, *, shortcut: int, units: int) -> Tensor:
    """The Hessian at W = 0 in closed form (Li et al., Theorem 2), row-major where the paper stacks columns.

    n = 1, eqs (10), (29), (32): B = I x Sigma_XX on the diagonal and A = B + (Sigma_XX - Sigma_YX) x I below it;
    n = 2, eq. (8): (Sigma_XX - Sigma_YX) x I couples the two layers of a unit; n >= 3: zero.
    """
    if shortcut < 1 or units < 1:
        raise UsageError(f"expected at least one layer per unit and one unit; got {shortcut} and {units}")
    width = moments.xx.shape[-1]
    eye = torch.eye(width, dtype=torch.float64)
    coupling = torch.einsum("pq,ab->pabq", moments.distance, eye).reshape(width**2, width**2)
    same = torch.kron(eye, moments.xx)
    if shortcut == 1:
        below = torch.ones(units, units, dtype=torch.float64).tril(-1)
        lower = torch.kron(below, same + coupling)
        return lower + lower.T + torch.kron(torch.eye(units, dtype=torch.float64), same)
    unit = torch.zeros(shortcut * width**2, shortcut * width**2, dtype=torch.float64)
    if shortcut == 2:
        unit[width**2 :, : width**2], unit[: width**2, width**2 :] = coupling, coupling.T
    return torch.kron(torch.eye(units, dtype=torch.float64), unit)


def zero_eigenvalues(distance: Tensor, *, units: int, gain: float = 1.0) -> Tensor:
    """n = 2, eq. (26): +- gain sigma_i(Sigma_XX - Sigma_YX), each d * units times, ascending.

    With activations `distance` is Sigma_X,pre(X) - Sigma_Y,pre(X) and `gain` = mid'(0) post'(0).
    """
    sigma = gain * torch.linalg.svdvals(distance).repeat_interleave(distance.shape[-1] * units)
    return torch.cat([-sigma, sigma]).sort().values


def zero_condition(distance: Tensor) -> Condition:
    """n = 2, eq. (9): cond(H) = kappa(Sigma_X,pre(X) - Sigma_Y,pre(X)) at every depth."""
    return matrix_condition(distance)


def _loss(product: Tensor, moments: Moments) -> Tensor:
    xx, yx, yy = (part.to(product) for part in (moments.xx, moments.yx, moments.yy))
    return ((product @ xx / 2 - yx) * product).sum((-2, -1)) + yy / 2


def _checked(weights: Tensor, shortcut: int) -> tuple[int, int]:
    if weights.ndim < 3 or weights.shape[-1] != weights.shape[-2] or not weights.is_floating_point():
        raise UsageError(f"expected weights (..., layers, d, d); got {tuple(weights.shape)} of {weights.dtype}")
    layers = weights.shape[-3]
    if shortcut < 0 or layers < 1 or (shortcut and layers % shortcut):
        raise UsageError(f"expected layers in whole units of shortcut >= 1, or 0 for none; got {layers} and {shortcut}")
    return layers, weights.shape[-1]


def _forward(weights: Tensor, shortcut: int) -> tuple[list[Tensor], Tensor]:
    """(B_i: what enters layer i, as a matrix applied to x; W)."""
    layers, width = _checked(weights, shortcut)
    inputs = []
    state = branch = torch.eye(width, dtype=weights.dtype, device=weights.device)
    for layer in range(layers):
        inputs.append(branch)
        branch = weights[..., layer, :, :] @ branch
        if shortcut and (layer + 1) % shortcut == 0:
            state = branch = state + branch
    return inputs, branch


def _paths(weights: Tensor, shortcut: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(C_ij (..., i, j, d, d), zero for j >= i; A_i; B_i; W) from one sweep over the layers.

    Column 0 of `branch` and `state` is d / d x, column j + 1 is d / d (output of layer j).
    """
    layers, width = _checked(weights, shortcut)
    eye = torch.eye(width, dtype=weights.dtype, device=weights.device)
    state = weights.new_zeros(*weights.shape[:-3], layers + 1, width, width)
    state[..., 0, :, :] = eye
    branch, reached = state.clone(), []
    for layer in range(layers):
        reached.append(branch)
        branch = weights[..., None, layer, :, :] @ branch
        branch[..., layer + 1, :, :] = eye
        if shortcut and (layer + 1) % shortcut == 0:
            state = branch = state + branch
    every = torch.stack(reached, dim=-4)
    return every[..., 1:, :, :], branch[..., 1:, :, :], every[..., 0, :, :], branch[..., 0, :, :]
