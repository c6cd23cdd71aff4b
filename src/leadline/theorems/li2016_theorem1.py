"""Li et al., Theorem 1: deep residual networks of two-layer units with small weights map any samples to any labels.

Sides: the network of eq. (3), really built and run on X; the labels Y, and bounds on the largest ||W||_F of its n
layers.
Needs: d_x >= 3, unit samples and labels at least rho apart (which one-hot labels that repeat are not).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import apart, excess, rounding
from leadline.theorems._sphere import least_distance, longest, moves
from leadline.theorems._unit import unit

UNITS = (40, 160, 640)
CONSTANT = math.sqrt(32 * math.pi)  # of the construction: floor(R / m) >= R / (2m) steps a column, n = 2R layers


@dataclass(frozen=True)
class Built:
    """Weights (R, 2, d_x, d_x), biases (R,), and the least distance rho of the data they were built for."""

    weights: Tensor
    biases: Tensor
    rho: float

    def __call__(self, x: Tensor) -> Tensor:
        for unit_weights, b in zip(self.weights, self.biases, strict=True):
            x = through(unit_weights, b, x)
        return x

    @property
    def largest(self) -> float:
        """max ||W^{r,l}||_F."""
        return float(self.weights.norm(dim=(2, 3)).amax())


def through(weights: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """W^2 ReLU(W^1 x + b) + x."""
    return weights[1] @ torch.relu(weights[0] @ x + b) + x


def build(x: Tensor, y: Tensor, units: int) -> Built:
    """Lemma 1 along the moves of Lemma 2, each unit made for where the units before it have really put the column."""
    rho, (d_x, m) = least_distance(x, y), x.shape
    net = Built(torch.zeros(units, 2, d_x, d_x).double(), torch.zeros(units).double(), rho)
    current = x.clone()
    for r, (i, place) in enumerate(moves(x, y, units // m)):
        net.weights[r, 0], net.weights[r, 1], net.biases[r] = unit(current[:, i], place, rho)
        current = through(net.weights[r], net.biases[r], current)
    return net


def instances(draw: Draw) -> Iterator[tuple[str, Tensor, Tensor]]:
    for d_x, m in ((3, 1), (3, 4), (6, 8)):
        yield f"d_x={d_x}, m={m}", draw.unit(d_x, m), draw.unit(d_x, m)
    labels = torch.eye(4).double()[:, [0, 1, 2, 3, 0, 1]] + 0.2 * draw.normal(4, 6)
    yield "noisy one-hot labels, d_x=4, m=6", draw.unit(4, 6), torch.nn.functional.normalize(labels, dim=0)


def maps(draw: Draw, *, dtype: torch.dtype = torch.float64) -> Iterator[Case | Aside]:
    """The network's output against Y; with its weights rounded to `dtype` first."""
    for what, x, y in instances(draw):
        for units in UNITS:
            net = build(x, y, units)
            rounded = Built(net.weights.to(dtype).double(), net.biases.to(dtype).double(), net.rho)
            growth = 1 + 8 * longest(net.rho, x.shape[1]) / net.rho**2  # Lemma 1's, all moves of one column together
            yield Case(f"{what}, R={units}", apart(rounded(x), y), rounding(4 * x.numel(), growth))
        single = Built(net.weights.float().double(), net.biases.float().double(), net.rho)
        yield Aside(f"distance from Y with the weights rounded to float32, R={units}, {what}", apart(single(x), y))


def order(
    draw: Draw, *, bound: Callable[[float, float, float], float], constant: float = CONSTANT
) -> Iterator[Case | Aside]:
    """max ||W||_F <= constant * bound(n, m, rho)."""
    for what, x, y in instances(draw):
        for units in UNITS:
            net = build(x, y, units)
            limit = bound(2 * units, x.shape[1], net.rho)
            yield Case(f"{what}, R={units}", excess(net.largest, constant * limit, scale=limit), rounding(100))
        yield Aside(f"max ||W||_F over the bound without its constant, R={units}, {what}", net.largest / limit)


def printed(n: float, m: float, rho: float) -> float:
    """Eqs. (6), (20): sqrt(m / (n rho)) (m + 1 / rho)."""
    return math.sqrt(m / (n * rho)) * (m + 1 / rho)


def corrected(n: float, m: float, rho: float) -> float:
    """sqrt((m / (n rho)) (m + 1 / rho)): sqrt(8 d) / rho with d = m pi (rho (m - 1) / 2 + 1) / R."""
    return math.sqrt(m / (n * rho) * (m + 1 / rho))


STATEMENTS = (
    Statement(
        part="network",
        place="Theorem 1, eq. (3)",
        text="There is a network of R units x + W^2 ReLU(W^1 x + b) that maps X to Y.",
        check=maps,
        broken=partial(maps, dtype=torch.float32),
    ),
    Statement(
        part="printed",
        place="Theorem 1, eqs. (6), (7), (20)",
        text="Its weights have ||W||_F <= C sqrt(m / (n rho)) (m + 1 / rho) = O(1 / sqrt n), n the number of layers.",
        check=partial(order, bound=printed),
        broken=partial(order, bound=printed, constant=0.001),
        note="true, but too large by sqrt(m + 1 / rho): the root covers both factors",
    ),
    Statement(
        part="corrected",
        place="Theorem 1, eq. (20)",
        text="Its weights have ||W||_F <= C sqrt((m / (n rho)) (m + 1 / rho)), C = sqrt(32 pi).",
        check=partial(order, bound=corrected),
        broken=partial(order, bound=lambda n, m, rho: corrected(n, m, rho) / n, constant=CONSTANT),
    ),
)
