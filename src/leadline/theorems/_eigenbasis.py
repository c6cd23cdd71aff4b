"""Linear networks whose layers share their eigenvectors (Oyedotun et al., Assumption 1), and their closed form.

Spectra are (L, n): lambda_i^l in row l, column i; the paper's dominant index 1 is column 0.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.theorems import Case
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import EPS, apart, excess, kappa, rounding, strictly

SHAPES = ((1, 5), (2, 40), (8, 110), (6, 1000))  # n, L


@dataclass(frozen=True)
class Net:
    """Layers as ordinary matrices (L, n, n), and what is claimed of them: V and the eigenvalues of each layer, (L, n).

    `sizes` (L,) bounds the norms of the summands a layer was added up from, in units of its largest eigenvalue.
    """

    matrices: Tensor
    basis: Tensor
    factors: Tensor
    sizes: Tensor

    def output(self, x: Tensor) -> Tensor:
        """h^L by one matrix product after another."""
        for matrix in self.matrices:
            x = matrix @ x
        return x

    def claimed(self, x: Tensor) -> Tensor:
        """sum_i alpha_i v_i prod_l factor_i^l, where x = sum_i alpha_i v_i: eqs. (12), (18), (45)."""
        alpha: Tensor = torch.linalg.solve(self.basis, x)
        return self.basis @ (self.factors.prod(0)[:, None] * alpha)

    @property
    def tolerance(self) -> float:
        """Of ||h^L|| relative to ||x|| prod_l max_i |factor_i^l|: every layer adds its own rounding once."""
        n = len(self.basis)
        return rounding(n**2 * (1 + float(self.sizes.sum())), kappa(self.basis) ** 3)


def layers(basis: Tensor, spectra: Tensor) -> Tensor:
    """W^l = V diag(lambda^l) V^-1, (L, n, n)."""
    inverse: Tensor = torch.linalg.inv(basis)
    return basis @ torch.diag_embed(spectra) @ inverse


def plain(basis: Tensor, spectra: Tensor, *, skip: float = 0.0) -> Net:
    """h^l = W^l h^{l-1}; the layers really add `skip` I, which the claim never does."""
    matrices = layers(basis, spectra) + skip * torch.eye(len(basis)).double()
    return Net(matrices, basis, spectra, torch.ones(len(spectra)))


def residual(basis: Tensor, spectra: Tensor, *, skip: float = 1.0) -> Net:
    """h^l = (W^l + I) h^{l-1}; the layers really use `skip` in the place of 1, the claim never does."""
    matrices = layers(basis, spectra) + skip * torch.eye(len(basis)).double()
    return Net(matrices, basis, spectra + 1, _sizes(spectra.abs().amax(1), spectra))


def aggregated(basis: Tensor, first: Tensor, last: Tensor, *, skip: float = 1.0) -> Net:
    """h^l = (sum_k W^{l,k} W^{l-1,k} + I) h^{l-1} from spectra of the two layers of every path, (m, L, n)."""
    paths = layers(basis, last) @ layers(basis, first)
    total = (first * last).sum(0)
    matrices = paths.sum(0) + skip * torch.eye(len(basis)).double()
    return Net(matrices, basis, total + 1, _sizes((first.abs().amax(2) * last.abs().amax(2)).sum(0), total))


def _sizes(summands: Tensor, spectra: Tensor) -> Tensor:
    return (summands + 1) / (spectra + 1).abs().amax(1).clamp(min=EPS)


def bases(draw: Draw, n: int) -> dict[str, Tensor]:
    """Orthogonal eigenvectors, as in Definition 1, and oblique ones with kappa(V) = 10, as Assumption 1 allows."""
    return {"orthogonal V": draw.orthogonal(n), "oblique V": draw.matrix(n, n, kappa=10.0)}


def spectra(draw: Draw, depth: int, n: int) -> dict[str, Tensor]:
    """Random eigenvalues and the edges: none at all, one direction lost in every layer."""
    random = draw.normal(depth, n)
    lost = torch.cat([random[:, :-1], 0 * random[:, -1:]], dim=1)
    return {"random": random, "zero": 0 * random, "rank-deficient": lost}


def closed_form(what: str, net: Net, draw: Draw) -> Case:
    """The products of the matrices against the closed form, for three inputs."""
    x = draw.normal(len(net.basis), 3)
    scale = net.factors.abs().amax(1).prod() * x.norm()
    depth, n = net.factors.shape
    return Case(f"{what}, n={n}, L={depth}", apart(net.output(x), net.claimed(x), scale=scale), net.tolerance)


def unshared(matrices: Tensor, draw: Draw) -> float:
    """||h^L - closed form|| / ||h^L|| of layers that share no eigenvectors.

    V are those of the first layer, the eigenvalues of the others the diagonal of V^-1 W^l V.
    """
    h = x = draw.normal(matrices.shape[1], 1)
    for matrix in matrices:
        h = matrix @ h
    basis = torch.linalg.eig(matrices[0])[1]
    factors = torch.linalg.solve(basis, matrices.to(basis) @ basis).diagonal(dim1=1, dim2=2).prod(0)
    claim = basis @ (factors[:, None] * torch.linalg.solve(basis, x.to(basis)))
    return apart(h.to(basis), claim, scale=h.norm())


def dominant_first(values: Tensor) -> Tensor:
    """Each row in falling order of its absolute values."""
    return values.gather(1, values.abs().argsort(dim=1, descending=True))


def gapped(draw: Draw, depth: int, n: int, *, least: float = 0.0, most: float = 0.9) -> Tensor:
    """Eigenvalues with 0.8 <= |first| <= 1.25 and least <= |others / first| <= most, signs at random."""
    first = draw.uniform(depth, 1, low=0.8, high=1.25) * draw.sign(depth, 1)
    return torch.cat([first, first * draw.uniform(depth, n - 1, low=least, high=most) * draw.sign(depth, n - 1)], 1)


def dominated(net: Net, x: Tensor) -> float:
    """What is left of all directions but the first, relative to the first, at most.

    max_{i >= 2} prod_l |factor_i^l / factor_1^l| times ||V|| ||alpha_{i >= 2}|| / (||v_1|| ||alpha_1||).
    """
    alpha = torch.linalg.solve(net.basis, x)
    shares = (net.factors[:, 1:] / net.factors[:, :1]).abs().log().sum(0).amax().exp()
    others = torch.linalg.matrix_norm(net.basis, 2) * alpha[1:].norm()
    return float(shares * others / (alpha[0].norm() * net.basis[:, 0].norm()))


def leading(net: Net, x: Tensor) -> Tensor:
    """x + alpha_1 v_1 (prod_l factor_1^l - 1), the right side of eqs. (16) and (22)."""
    alpha: Tensor = torch.linalg.solve(net.basis, x)[:1]
    return x + net.basis[:, :1] * (net.factors[:, 0].prod() - 1) * alpha


def approximated(what: str, net: Net, x: Tensor) -> Case:
    """The relative distance of h^L from its leading terms, seen in the eigenbasis (V = I).

    Diagonal layers mix nothing, so every component carries the rounding of its own L factors only.
    """
    h = net.output(x)
    return Case(what, apart(h, leading(net, x), scale=h.norm()), rounding(4 * len(net.factors)))


def bounded(what: str, net: Net, x: Tensor) -> Case:
    """||h^L - leading|| <= ||V|| ||alpha_{i >= 2}|| (max_{i >= 2} prod_l |factor_i^l| + 1), over the first term."""
    alpha = torch.linalg.solve(net.basis, x)
    first = (net.factors[:, 0].prod() * alpha[:1] * net.basis[:, :1]).norm()
    others = torch.linalg.matrix_norm(net.basis, 2) * alpha[1:].norm()
    rest = apart(net.output(x), leading(net, x), scale=first)
    scale = net.factors.abs().amax(1).prod() * x.norm()
    return Case(what, excess(rest, dominated(net, x) + others / first), net.tolerance * float(scale / first))


def kept(what: str, net: Net, batch: Tensor) -> Case:
    """H^L is non-singular: sigma_min / sigma_max of a well-conditioned batch, in the eigenbasis, is above rounding."""
    sigma = torch.linalg.svdvals(net.output(batch))
    depth, n = net.factors.shape
    return Case(what, strictly(rounding(4 * depth + n**2) * sigma[0], sigma[-1]), 0.0)


def lost_at(factors: Tensor) -> float:
    """The first depth at which max_i / min_i of |prod_l factor_i^l| exceeds 1 / EPS; inf if not reached."""
    logs = factors.abs().log().cumsum(0)
    lost = (logs.amax(1) - logs.amin(1)) > -math.log(EPS)
    return float(lost.double().argmax() + 1) if bool(lost.any()) else math.inf
