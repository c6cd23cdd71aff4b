"""Moving points on the unit sphere past one another: the paths behind Li et al., Lemma 2 and Theorem 1.

A point goes along a great circle; where that enters the cap of chord radius rho/2 around another point, it follows the
rim of the cap instead. Points are columns; any two are at least rho apart before and after the whole move.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize


def least_distance(*points: Tensor) -> float:
    """d_min over all columns of all matrices; inf for a single one."""
    every = torch.cat(points, dim=1)
    return float(torch.pdist(every.T).amin()) if every.shape[1] > 1 else math.inf


@dataclass(frozen=True)
class Arc:
    """center + radius (cos(s / radius) first + sin(s / radius) second) for 0 <= s <= length."""

    center: Tensor
    radius: float
    first: Tensor
    second: Tensor
    length: float

    def at(self, s: float) -> Tensor:
        angle = s / self.radius
        return self.center + self.radius * (math.cos(angle) * self.first + math.sin(angle) * self.second)


def great_circle(start: Tensor, end: Tensor) -> Arc:
    """The minor arc; between opposite points any of them."""
    second, angle = _towards(start, end, away_from=start)
    return Arc(torch.zeros_like(start), 1.0, start, second, angle)


def _towards(first: Tensor, other: Tensor, *, away_from: Tensor) -> tuple[Tensor, float]:
    """The unit vector that turns `first` to `other`, and the angle; if they are opposite, some one off `away_from`."""
    across = other - (first @ other) * first
    angle = math.atan2(float(across.norm()), float(first @ other))
    if across.norm() < 1e-6:
        axis = torch.eye(len(first)).double()[int((first.abs() + away_from.abs()).argmin())]
        off = torch.linalg.qr(torch.stack([first, away_from], dim=1))[0]
        across = axis - off @ (off.T @ axis)
    return normalize(across, dim=0), angle


def crossing(circle: Arc, obstacle: Tensor, theta: float) -> tuple[float, float] | None:
    """Where the great circle is inside the cap of angle theta around the obstacle, if it is."""
    a, b = float(circle.first @ obstacle), float(circle.second @ obstacle)
    reach = math.hypot(a, b)
    if reach <= math.cos(theta):
        return None
    middle, half = math.atan2(b, a), math.acos(math.cos(theta) / reach)
    inside = middle - half, middle + half
    return inside if inside[0] > 0 and inside[1] < circle.length else None


def rim(start: Tensor, end: Tensor, obstacle: Tensor, theta: float) -> Arc:
    """The minor arc on the rim of the cap."""
    center = math.cos(theta) * obstacle
    first = normalize(start - center, dim=0)
    second, angle = _towards(first, normalize(end - center, dim=0), away_from=obstacle)
    return Arc(center, math.sin(theta), first, second, angle * math.sin(theta))


def path(start: Tensor, end: Tensor, obstacles: Tensor, rho: float, *, detours: bool = True) -> list[Arc]:
    """From start to end, nowhere nearer than rho/2 to an obstacle."""
    circle = great_circle(start, end)
    theta = 2 * math.asin(min(rho, 2.0) / 4)
    caps = [(inside, each) for each in obstacles.T if detours and (inside := crossing(circle, each, theta))]
    arcs, here = [], 0.0
    for (enters, leaves), obstacle in sorted(caps, key=lambda cap: cap[0]):
        arcs += [_piece(circle, here, enters), rim(circle.at(enters), circle.at(leaves), obstacle, theta)]
        here = leaves
    return [*arcs, _piece(circle, here, circle.length)]


def _piece(circle: Arc, start: float, end: float) -> Arc:
    """The part of a great circle between two places."""
    turned = circle.at(start + math.pi / 2)
    return Arc(circle.center, 1.0, circle.at(start), turned, end - start)


def stops(arcs: list[Arc], count: int, end: Tensor) -> Iterator[Tensor]:
    """`count` points along the path at equal lengths, the last one exactly the end."""
    total = sum(arc.length for arc in arcs)
    for k in range(1, count):
        left = total * k / count
        for arc in arcs:
            if left <= arc.length:
                break
            left -= arc.length
        yield arc.at(min(left, arc.length))
    yield end


def longest(rho: float, m: int) -> float:
    """(rho (m - 1) / 2 + 1) pi, Lemma 2's bound on the length of one point's path past m - 1 others."""
    return (rho * (m - 1) / 2 + 1) * math.pi


def moves(x: Tensor, y: Tensor, steps: int, *, detours: bool = True) -> Iterator[tuple[int, Tensor]]:
    """(column, its next place), `steps` for each column, from the columns of X to those of Y."""
    rho, current = least_distance(x, y), x.clone()
    for i in range(x.shape[1]):
        others = torch.cat([current[:, :i], current[:, i + 1 :]], dim=1)
        for place in stops(path(x[:, i], y[:, i], others, rho, detours=detours), steps, y[:, i]):
            yield i, place
        current[:, i] = y[:, i]
