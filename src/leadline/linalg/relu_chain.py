"""The exact Hessian of small ReLU chains, pair of layers by pair of layers, as matrix products over the samples.

With ReLUs the loss is locally a product of matrices for every sample: with A_i = d output / d z_i, b_i the input of
layer i, z_i = W_i b_i, C_ij = d b_i / d z_j (i > j) and the error e_i = A_i^T (output - y), in W_i[p, a] and W_j[b, q]

    H = E[ (A_i^T A_j)[p, b] b_i[a] b_j[q]  +  e_i[p] b_j[q] C_ij[a, b] ].

Each term is one product of d^2 x m by m x d^2 per pair. For fixed j one sweep forwards gives all C_ij and A_j, one
backwards all A_i^T A_j; both only multiply by the layers' own d x d matrices. Samples run along the last axis.
relu'(0) = 0, as in torch: at exactly zero weights a "mid" chain has Hessian zero.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.core.errors import UsageError, unknown
from leadline.linalg import memory

POSITIONS = ("pre", "mid", "post")


@dataclass(frozen=True, kw_only=True)
class ReluChain:
    """Units of `unit` square layers, with or without an identity skip, and ReLUs at positions of Li et al., Def. 2.

    "pre" is before a unit's first layer, "mid" between its layers, "post" after its last. `skip=False` is the plain
    net with ReLUs in the same places.
    """

    unit: int = 2
    skip: bool = True
    relu: tuple[str, ...] = ("mid",)

    def __post_init__(self) -> None:
        for position in self.relu:
            if position not in POSITIONS:
                raise unknown("position", position, POSITIONS)
        if self.unit < 1:
            raise UsageError(f"expected at least one layer per unit; got {self.unit}")

    def after(self, layer: int) -> bool:
        """Whether a ReLU follows this layer."""
        return ("post" if (layer + 1) % self.unit == 0 else "mid") in self.relu

    def output(self, weights: Tensor, x: Tensor) -> Tensor:
        """The net on samples in rows; weights (layers, d, d) in the order of application."""
        _check(self, weights, x)
        return self._run(weights, x.T).output.T

    def loss(self, weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """(1/2m) sum |output - y|^2."""
        return (self.output(weights, x) - y).square().sum() / (2 * len(x))

    def hessian(self, weights: Tensor, x: Tensor, y: Tensor, *, chunk: int = 1024) -> Tensor:
        """The exact Hessian (P, P) of the loss, P = layers d^2, in the dtype of `weights`; vec(W) is row-major."""
        _check(self, weights, x)
        if x.shape != y.shape or not len(x):
            raise UsageError(f"expected samples x and y of one shape (m, d); got {tuple(x.shape)} and {tuple(y.shape)}")
        weights = weights.detach()
        layers, width, _ = weights.shape
        memory.require(
            5 * weights.numel() ** 2 * weights.element_size(),
            f"the Hessian of {weights.numel():,} parameters",
            instead="take a shallower or narrower chain",
            device=weights.device,
        )
        direct, mixed = weights.new_zeros(2, layers, layers, width**2, width**2).unbind()
        for xs, ys in zip(torch.split(x, chunk), torch.split(y, chunk), strict=True):
            self._add(weights, xs.to(weights).T.contiguous(), ys.to(weights).T, direct, mixed)
        direct.diagonal(0, 0, 1).div_(2)  # the transpose of the lower half is added below
        square = (layers, layers, *[width] * 4)
        half = direct.view(square).permute(0, 2, 4, 1, 3, 5)  # from i, j, p, b, a, q to i, p, a, j, b, q
        half = half + mixed.view(square).permute(0, 2, 4, 1, 5, 3)  # from i, j, p, q, a, b
        flat = half.reshape(weights.numel(), weights.numel()) / len(x)
        return flat + flat.T

    def _add(self, weights: Tensor, x: Tensor, y: Tensor, direct: Tensor, mixed: Tensor) -> None:
        """Add both terms of every pair i >= j over the columns of x: direct[i, j] (pb, aq), mixed[i, j] (pq, ab)."""
        layers, width, _ = weights.shape
        run = self._run(weights, x)
        errors = {i: e[:, 0] for i, e in self._back(weights, run, (run.output - y)[:, None])}
        for j in range(layers):
            for i, reached in self._ahead(weights, run, j):
                if i < layers:
                    outer = errors[i][:, None] * run.inputs[j]
                    mixed[i, j].addmm_(outer.view(width**2, -1), reached.reshape(width**2, -1).T)
            for i, pulled in self._back(weights, run, reached, first=j):
                outer = run.inputs[i][:, None] * run.inputs[j]
                direct[i, j].addmm_(pulled.reshape(width**2, -1), outer.view(width**2, -1).T)

    def _run(self, weights: Tensor, x: Tensor) -> "_Run":
        """Forwards, keeping what every layer was given and which ReLUs were open."""
        inputs, gates, entries = [], [], []
        state = branch = x
        for layer, weight in enumerate(weights):
            if layer % self.unit == 0:
                entries.append((state > 0).to(x) if "pre" in self.relu else None)
                branch = _gated(state, entries[-1])
            inputs.append(branch)
            branch = weight @ branch
            gates.append((branch > 0).to(x) if self.after(layer) else None)
            branch = _gated(branch, gates[-1])
            if (layer + 1) % self.unit == 0:
                state = branch = state + branch if self.skip else branch
        return _Run(branch, inputs, gates, entries)

    def _ahead(self, weights: Tensor, run: "_Run", start: int) -> Iterator[tuple[int, Tensor]]:
        """(i, C_ij) for every i > j = `start` and last (layers, A_j), each (d, d, m)."""
        width, columns = run.output.shape
        eye = torch.eye(width, dtype=run.output.dtype, device=run.output.device)
        branch = _gated(eye[..., None].expand(-1, -1, columns), run.gates[start])
        state = torch.zeros_like(branch)
        for layer in range(start + 1, len(weights)):
            if layer % self.unit == 0:
                state = state + branch if self.skip else branch
                branch = _gated(state, run.entries[layer // self.unit])
            yield layer, branch
            branch = _gated((weights[layer] @ branch.flatten(1)).view(width, width, columns), run.gates[layer])
        yield len(weights), state + branch if self.skip else branch

    def _back(self, weights: Tensor, run: "_Run", slope: Tensor, *, first: int = 0) -> Iterator[tuple[int, Tensor]]:
        """(i, A_i^T slope) from the last layer down to `first`, for slope (d, k, m) at the output."""
        branch = slope
        for layer in reversed(range(first, len(weights))):
            branch = _gated(branch, run.gates[layer])
            yield layer, branch
            branch = (weights[layer].T @ branch.flatten(1)).view(slope.shape)
            if layer % self.unit == 0:
                branch = _gated(branch, run.entries[layer // self.unit])
                slope = branch = slope + branch if self.skip else branch


@dataclass(frozen=True)
class _Run:
    output: Tensor
    inputs: list[Tensor]
    gates: list[Tensor | None]
    entries: list[Tensor | None]


def _gated(values: Tensor, gate: Tensor | None) -> Tensor:
    """values (d, m) or (d, k, m) with the rows where `gate` (d, m) is closed set to zero."""
    if gate is None:
        return values
    return values * (gate if values.ndim == 2 else gate[:, None])


def _check(chain: ReluChain, weights: Tensor, x: Tensor) -> None:
    if weights.ndim != 3 or weights.shape[1] != weights.shape[2] or not weights.is_floating_point():
        raise UsageError(f"expected weights (layers, d, d); got {tuple(weights.shape)} of {weights.dtype}")
    if not len(weights) or len(weights) % chain.unit:
        raise UsageError(f"expected layers in whole units of {chain.unit}; got {len(weights)}")
    if x.ndim != 2 or x.shape[1] != weights.shape[1]:
        raise UsageError(f"expected samples (m, {weights.shape[1]}); got {tuple(x.shape)}")
