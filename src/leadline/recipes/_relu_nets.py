"""Studies of nets with ReLUs in mid position, trained by full-batch gradient descent (Li et al., section 5.3.1).

Starts and names are those of `_linear_nets`; "xavier" and "orthogonal" have no skips and ReLUs in the same places as
2-shortcut nets, after every odd layer (appendix B). Data are the first `samples` of the whitened images: with ReLUs
second moments do not do. Trainings are in float32, spectra in float64.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.core.study import Measure
from leadline.linalg.hessian import spectrum
from leadline.linalg.relu_chain import ReluChain
from leadline.recipes._linear_nets import SHORTCUTS, problem, start

CHUNK = 4096


def trainings(
    *, data: str, samples: int, net: str, depth: int, seed: int, rates: Sequence[float], epochs: int, every: int
) -> Measure:
    """Losses and average Frobenius norms of the weights, a number for every rate, every so many epochs and at the end.

    All rates are one batch of nets.
    """
    given = Problem.of(data, samples, torch.float32)
    weights = start(net, depth, seed).float().expand(len(rates), -1, -1, -1)
    step = torch.tensor(rates)[:, None, None, None]
    for epoch in range(epochs + 1):
        losses, slope = given.loss_and_gradient(weights, skip=bool(SHORTCUTS[net]))
        if epoch % every == 0 or epoch == epochs:
            yield epoch, "loss", losses.tolist()
            yield epoch, "norm", torch.linalg.matrix_norm(weights).mean(-1).tolist()
        weights = weights - step * slope


def initial(*, data: str, samples: int, net: str, depths: Sequence[int], seed: int) -> Measure:
    """Of the Hessian at the start, for every depth: |lambda|_max, |lambda|_(0.1), their ratio and the index."""
    x, y = (part[:samples] for part in problem(data))
    chain = ReluChain(unit=2, skip=bool(SHORTCUTS[net]), relu=("mid",))
    for depth in depths:
        found = spectrum(chain.hessian(start(net, depth, seed), x, y))
        lost = found.zeros >= 0.1 * len(found.eigenvalues)
        yield depth, "ratio", float("inf") if lost else found.ratio10
        yield depth, "largest", found.largest
        yield depth, "percentile10", found.percentile10
        yield depth, "index", found.index


@dataclass(frozen=True)
class Problem:
    """Samples in columns, (d, m) each."""

    x: Tensor
    y: Tensor

    @classmethod
    def of(cls, data: str, samples: int, dtype: torch.dtype) -> "Problem":
        x, y = (part[:samples].to(dtype).T.contiguous() for part in problem(data))
        return cls(x, y)

    def loss_and_gradient(self, weights: Tensor, *, skip: bool) -> tuple[Tensor, Tensor]:
        """1/(2m) sum |y - net(x)|^2 of every net of weights (nets, layers, d, d), and its gradient."""
        leaf = weights.detach().requires_grad_()
        losses, slope = torch.zeros(len(leaf), dtype=leaf.dtype), torch.zeros_like(leaf)
        for x, y in self.chunks():
            part = (outputs(leaf, x, skip=skip) - y).square().sum((-2, -1)) / (2 * self.x.shape[1])
            (more,) = torch.autograd.grad(part.sum(), leaf)
            losses, slope = losses + part.detach(), slope + more
        return losses, slope

    def chunks(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(torch.split(self.x, CHUNK, dim=1), torch.split(self.y, CHUNK, dim=1), strict=True)


def outputs(weights: Tensor, x: Tensor, *, skip: bool) -> Tensor:
    """Every net's output (nets, d, m): units W^2 ReLU(W^1 h), with the identity beside them if `skip`."""
    h = x.expand(len(weights), *x.shape)
    for first, second in zip(weights[:, ::2].unbind(1), weights[:, 1::2].unbind(1), strict=True):
        branch = second @ torch.relu(first @ h)
        h = h + branch if skip else branch
    return h
