"""Chen et al., Remark 2: in a trained wide ResNEst every residual representation is at least as good as the one before.

Sides: the risks of local minima of (P) cut after each block, and of linear heads on each x_i itself; the ones before,
and the best linear predictor. Trained means all weights, by L-BFGS, then the prediction weights to a minimum by
Newton.
Needs: Assumptions 2, 3 and 4; for heads on x_i also independent columns of [W_0 ... W_i].
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._resnest import OUTPUTS, SIZES, Basis, local_minimum, lowest, minimise, resnest
from leadline.theorems._rounding import excess, kappa

WIDE = sum(SIZES)
HIDDEN = 6
STEPS = 60


def forward(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Basis:
    """Features G_i(x_{i-1}) = tanh(B_i tanh(A_i x_{i-1})) of a ResNEst with these weights."""
    features, maps, hidden = [x], [], weights["W0"] @ x
    for i in range(1, len(SIZES)):
        features.append(torch.tanh(weights[f"B{i}"] @ torch.tanh(weights[f"A{i}"] @ hidden)))
        maps.append(weights[f"W{i - 1}"])
        hidden = hidden + weights[f"W{i}"] @ features[-1]
    return Basis(tuple(maps), tuple(features), y)


def trained(draw: Draw, width: int) -> tuple[Basis, Tensor]:
    """The basis and W_L after training all weights, and (W_L, W_{L+1}) at a local minimum."""
    data = resnest(draw, width=width)
    shapes = {"head": (OUTPUTS, width)}
    for i, size in enumerate(SIZES):
        shapes |= {f"W{i}": (width, size)} | ({f"A{i}": (HIDDEN, width), f"B{i}": (size, HIDDEN)} if i else {})
    weights = {name: (draw.normal(*shape) / shape[1] ** 0.5).requires_grad_() for name, shape in shapes.items()}
    optimizer = torch.optim.LBFGS(list(weights.values()), max_iter=STEPS, line_search_fn="strong_wolfe")

    def risk() -> Tensor:
        basis = forward(weights, data.features[0], data.y)
        return basis.risk(torch.cat([weights[f"W{len(SIZES) - 1}"].flatten(), weights["head"].flatten()]))

    def closure() -> float:
        value = risk()
        for weight, grad in zip(weights.values(), torch.autograd.grad(value, list(weights.values())), strict=True):
            weight.grad = grad
        return float(value.detach())

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        fixed = {name: weight.detach() for name, weight in weights.items()}
        basis = forward(fixed, data.features[0], data.y)
    start = torch.cat([fixed[f"W{len(SIZES) - 1}"].flatten(), fixed["head"].flatten()])
    return basis, minimise(basis.risk, start)


def check(draw: Draw, *, reverse: bool = False) -> Iterator[Case | Aside]:
    basis, weights = trained(draw, WIDE)
    cuts = [basis.prefix(blocks) for blocks in range(1, len(basis.maps))]
    risks = [lowest(Basis((), basis.features[:1], basis.y))]
    risks += [float(cut.risk(local_minimum(cut, draw))) for cut in cuts] + [float(basis.risk(weights))]
    for i, pair in enumerate(pairwise(risks)):
        after, before = pair if reverse else pair[::-1]
        yield Case(f"risk after {i + 1} blocks", excess(after, before, scale=basis.scale), basis.tolerance)
    for i, risk in enumerate(risks):
        yield Aside(f"risk after {i} blocks of a trained ResNEst", risk)


def probes(draw: Draw, *, width: int = WIDE) -> Iterator[Case]:
    """Linear heads on x_i itself reach the risk of heads on all features so far."""
    basis, weights = trained(draw, width)
    maps = (*basis.maps, basis.split(weights)[0])
    for i in range(len(maps)):
        x = torch.stack([w @ v for w, v in zip(maps[: i + 1], basis.features[: i + 1], strict=True)]).sum(0)
        on_x = lowest(Basis((), (x,), basis.y))
        on_all = lowest(Basis((), basis.features[: i + 1], basis.y))
        columns = torch.cat(maps[: i + 1], dim=1)
        tolerance = basis.tolerance * min(kappa(columns), 1e6)
        yield Case(f"heads on x_{i}", abs(on_x - on_all) / basis.scale, tolerance)


STATEMENTS = (
    Statement(
        part="risks",
        place="Remark 2 (a), (b)",
        text="The risk does not rise from block to block, and never exceeds that of the best linear predictor.",
        check=check,
        broken=partial(check, reverse=True),
    ),
    Statement(
        part="representations",
        place="Remark 2, section 3.1",
        text="A linear head on x_i does as well as heads on v_0, ..., v_i: nothing is lost in the sum.",
        check=probes,
        broken=partial(probes, width=3),
    ),
)
