"""Li et al., Theorem 2: at zero, shortcuts of depth 2 give a Hessian whose condition number does not know the depth.

Sides: derivatives of the loss by automatic differentiation, with weights in the paper's order (unit, layer, column,
row); the Taylor coefficient, the blocks of eqs. (8), (10), (25), (29), (32) and the eigenvalues of eq. (26), from
moments.
Needs: Assumption 3. Identity, tanh, symmetric sigmoid; ReLU as the parabola through its values at -1, 0, 1 (torch has
relu'(0) = 0, and its Hessian at zero is zero), and as itself in the first part, which needs no derivative of it.
"""

from collections.abc import Iterator
from functools import partial
from math import factorial

import torch
from torch import Tensor

from leadline.linalg.hessian import dense_hessian
from leadline.theorems import Aside, Case, Statement
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import EPS, apart, excess, kappa, largest, rounding, strictly
from leadline.theorems._shortcut_net import AT_ZERO, Activation, Net, activated, problems, whitened

D, SAMPLES = 3, 7
PLACES = ("pre", "mid", "post", "all")


def nets(draw: Draw, places: tuple[str, ...] = PLACES) -> Iterator[tuple[str, Net, float, float]]:
    """Every activation at every place, with sigma'_mid(0) and sigma'_post(0)."""
    for data, x, y in problems(draw, D, SAMPLES):
        for name in AT_ZERO:
            for place in places if name != "identity" else ("all",):
                chosen, slope = activated(name, place)
                slopes = (slope if place in ("mid", "all") else 1.0), (slope if place in ("post", "all") else 1.0)
                yield f"{name} at {place}, {data}", Net(x=x, y=y, **chosen), *slopes


def hessian(net: Net, units: int, n: int, *, at: Tensor | None = None) -> Tensor:
    """In the paper's order; zero when no place is given."""
    place = torch.zeros(units, n, D, D).double() if at is None else at
    return dense_hessian(lambda columns: net.loss(columns.mT), place.mT)


# part 1


def stationary(draw: Draw, *, mid: Activation | None = None) -> Iterator[Case]:
    """The Taylor coefficients of t -> L(t w): none of order 1 to n - 1, the one of order n in closed form."""
    for n in (2, 3, 4, 5):
        for what, net, slope_mid, slope_post in nets(draw, ("all",)):
            net = net if mid is None else Net(x=net.x, y=net.y, mid=mid)
            weights = draw.normal(2, n, D, D)
            found = taylor(net, weights, n)
            claim = slope_post * slope_mid ** (n - 1) * first_order(net, weights)
            scale = float((net.x - net.y).norm() * net.pre(net.x).norm() / SAMPLES)
            scale *= float(torch.linalg.matrix_norm(weights, 2).prod(1).sum())
            tolerance = rounding(10 * n * D**2 * SAMPLES)
            yield Case(f"orders below, {what}, n={n}", largest(map(abs, found[:-1])) / scale, tolerance)
            yield Case(f"order n, {what}, n={n}", abs(found[-1] - claim) / scale, tolerance)


def taylor(net: Net, weights: Tensor, order: int) -> list[float]:
    """Coefficients 1 to `order` of t -> L(t w) at 0."""
    t = torch.zeros((), dtype=torch.float64, requires_grad=True)
    value, found = net.loss(t * weights), []
    for k in range(1, order + 1):
        value = torch.autograd.grad(value, t, create_graph=True, materialize_grads=True)[0]
        found.append(float(value.detach()) / factorial(k))
    return found


def first_order(net: Net, weights: Tensor) -> float:
    """(1/m) sum_mu (x - y)^T sum_r W^{r,n} ... W^{r,1} sigma_pre(x): what scaling all branches does to the loss."""
    linear = Net(x=net.x, y=net.y, pre=net.pre)
    return float(sum(((net.x - net.y) * linear.branch(unit, net.x)).sum() for unit in weights)) / SAMPLES


def stationary_relu(draw: Draw, *, post: Activation = torch.relu) -> Iterator[Case]:
    """The real ReLU: a branch of t w is t^n times that of w, so L(t w) = L(0) + c t^n + o(t^n)."""
    for n in (2, 3, 4, 5):
        for data, x, y in problems(draw, D, SAMPLES):
            net = Net(x=x, y=y, pre=torch.relu, mid=torch.relu, post=post)
            weights = draw.normal(2, n, D, D)
            for t in (0.5, 2.0**-10):
                scaled, branch = net.branch(t * weights[0], x), net.branch(weights[0], x)
                yield Case(
                    f"homogeneous, {data}, n={n}, t={t:g}", apart(scaled / t**n, branch, scale=branch.norm()), 0.0
                )
            branches = torch.stack([net.branch(unit, x) for unit in weights])
            slope = ((x - y) * branches).sum() / SAMPLES
            scaled_loss = partial(_with_branches_times, net, weights)
            s = torch.zeros((), dtype=torch.float64, requires_grad=True)
            found = torch.autograd.grad(scaled_loss(s), s)[0]
            scale = (x - y).norm() * branches.norm() * 2 / SAMPLES
            yield Case(f"order n, {data}, n={n}", apart(found, slope, scale=scale), rounding(10 * n * D**2 * SAMPLES))


def _with_branches_times(net: Net, weights: Tensor, s: Tensor) -> Tensor:
    """The loss with s times every branch, s = t^n."""
    scaled = Net(x=net.x, y=net.y, pre=net.pre, mid=net.mid, post=lambda h: s * net.post(h))
    return scaled.loss(weights)


def no_hessian(draw: Draw, *, least: int = 3) -> Iterator[Case]:
    """n >= 3: all second derivatives are zero."""
    for n in (least, 4):
        for what, net, _, _ in nets(draw, ("all",)):
            scale = float((net.x - net.y).norm() * net.x.norm()) / SAMPLES
            yield Case(f"{what}, n={n}", float(hessian(net, 2, n).abs().amax()) / scale, rounding(D * SAMPLES))


# part 2


def printed_permutation() -> Tensor:
    """P of eq. (24): P_ij = 1 if and only if i = ((j - 1) mod d) d + ceil(j / d), counted from 1."""
    j = torch.arange(1, D * D + 1)
    i = ((j - 1) % D) * D + torch.ceil(j / D).long()
    permutation = torch.zeros(D * D, D * D).double()
    permutation[i - 1, j - 1] = 1
    return permutation


def blocks_of_two(moment: Tensor, units: int) -> Tensor:
    """Eqs. (8), (25): R times [[0, A^T], [A, 0]], A = diag(M, ..., M) P^T."""
    a = torch.kron(torch.eye(D).double(), moment) @ printed_permutation().T
    zero = torch.zeros_like(a)
    pair = torch.cat([torch.cat([zero, a.T], dim=1), torch.cat([a, zero], dim=1)])
    return torch.kron(torch.eye(units).double(), pair)


def depth_two(draw: Draw, *, without_pre: bool = False) -> Iterator[Case]:
    """The Hessian against its blocks."""
    for what, net, slope_mid, slope_post in nets(draw):
        for units in (1, 3):
            moment = Net(x=net.x, y=net.y).moment() if without_pre else net.moment()
            claim = slope_mid * slope_post * blocks_of_two(moment, units)
            yield Case(f"{what}, R={units}", hessian_apart(net, claim, units, 2), rounding(10 * D * SAMPLES))
    zero = Net(x=(x := draw.normal(D, SAMPLES)), y=x)
    yield Case("degenerate, Y = X", float(hessian(zero, 2, 2).abs().amax()), rounding(D * SAMPLES))


def hessian_apart(net: Net, claim: Tensor, units: int, n: int) -> float:
    scale = float((net.x.norm() + net.y.norm()) * net.pre(net.x).norm()) / SAMPLES
    return apart(hessian(net, units, n), claim, scale=scale * units)


def depth_invariant(draw: Draw, *, extra: float = 0.0) -> Iterator[Case | Aside]:
    """Eqs. (9), (22), (26): +- sigma'_mid sigma'_post sigma_i(M), d R times each; cond(H) is cond(M) for every R."""
    for what, net, slope_mid, slope_post in nets(draw):
        sigma = slope_mid * slope_post * torch.linalg.svdvals(net.moment())
        for units in (1, 2, 5):
            found = torch.linalg.eigvalsh(hessian(net, units, 2) + extra * torch.eye(units * 2 * D * D).double())
            copies = sigma.repeat(D * units)
            claim = torch.cat([copies, -copies]).sort()[0]
            steps = float(len(found) ** 2)
            yield Case(f"eigenvalues, {what}, R={units}", apart(found, claim, scale=sigma[0]), rounding(steps))
            inverse = found.abs().amin() / found.abs().amax()  # cond itself can be infinite, on both sides
            yield Case(f"1 / condition, {what}, R={units}", apart(inverse, sigma[-1] / sigma[0]), rounding(steps))
            yield Case(f"a strict saddle, {what}, R={units}", strictly(found[0], -rounding(steps) * sigma[0]), 0.0)
    yield from _near_zero(draw)


def _near_zero(draw: Draw) -> Iterator[Aside]:
    """The paper's start, 0.01 times Xavier, with the real ReLU."""
    x, y = whitened(draw, D, 60), torch.eye(D).double()[draw.whole(0, D, 60).long()].T
    net = Net(x=x, y=y, mid=torch.relu)
    at_zero = kappa(net.moment())
    for units in (1, 10):
        start = 0.01 * draw.normal(units, 2, D, D) / D**0.5
        found = torch.linalg.eigvalsh(hessian(net, units, 2, at=start)).abs()
        share = float(found.amax() / found.amin()) / at_zero
        yield Aside(f"cond(H) with the real ReLU at 0.01 Xavier, R={units}, over cond(M)", share)


# part 3


def depth_one(draw: Draw) -> Iterator[Case]:
    """Eq. (10): all diagonal blocks are one B, all blocks below them one A, for any pre and post."""
    units = 4
    for what, net, _, _ in nets(draw, ("pre", "post", "all")):
        yield Case(what, *_toeplitz(net, units))


def depth_one_broken(draw: Draw) -> Iterator[Case]:
    """Skips that are not the identity tell the units apart."""
    net = Net(x=draw.normal(D, SAMPLES), y=draw.normal(D, SAMPLES), skip=lambda h, r: h * (1 + 0.1 * r))
    yield Case("fading skips", *_toeplitz(net, 4))


def _toeplitz(net: Net, units: int) -> tuple[float, float]:
    """How far the blocks are from (10), and what rounding allows."""
    size = D * D
    blocks = hessian(net, units, 1).reshape(units, size, units, size).transpose(1, 2)
    claim = [
        [blocks[0, 0] if r == s else blocks[1, 0] if r > s else blocks[1, 0].T for s in range(units)]
        for r in range(units)
    ]
    worst = largest(apart(blocks[r, s], claim[r][s]) for r in range(units) for s in range(units))
    return worst / float(blocks.abs().amax()), rounding(10 * units * D * SAMPLES)


def blocks_of_one(net: Net, units: int, *, transposed: bool = False) -> Tensor:
    """Eqs. (29), (32): B = P diag(Sigma^XX, ...) P^T, A = diag(Sigma^XX - Sigma^YX, ...) P^T + B."""
    p, eye = printed_permutation(), torch.eye(D).double()
    b = p @ torch.kron(eye, net.x @ net.x.T / net.x.shape[1]) @ p.T
    a = torch.kron(eye, net.moment().T.contiguous() if transposed else net.moment()) @ p.T + b
    rows = [torch.cat([b if r == s else a if r > s else a.T for s in range(units)], dim=1) for r in range(units)]
    return torch.cat(rows)


def linear_depth_one(draw: Draw, *, transposed: bool = False) -> Iterator[Case]:
    """Eqs. (27)-(32) with sigma_pre = sigma_post = identity."""
    for data, x, y in problems(draw, D, SAMPLES):
        net = Net(x=x, y=y)
        for units in (1, 2, 6):
            claim = blocks_of_one(net, units, transposed=transposed)
            error = hessian_apart(net, claim, units, 1)
            yield Case(f"{data}, R={units}", error, rounding(10 * units * D * SAMPLES))


def explodes(draw: Draw, *, n: int = 1) -> Iterator[Case | Aside]:
    """cond(H) of eqs. (10), (32) at R = 2, 4, ..., 32 against a lower bound that is linear in R.

    The same u in all units gives |lambda|_max >= |B + (R - 1) (A + A^T) / 2|; u and -u in two neighbours give
    |lambda|_min <= min_u ||((B - A^T) u, (A - B) u)|| / sqrt 2.
    """
    for data, x, y in problems(draw, D, 40):
        net = Net(x=x, y=y)
        first = blocks_of_one(net, 2)
        b, a = first[: D * D, : D * D], first[D * D :, : D * D]
        least = torch.linalg.svdvals(torch.cat([b - a.T, a - b]))[-1] / 2**0.5
        yield Case(f"slope of the bound, {data}", strictly(EPS * a.norm(), torch.linalg.matrix_norm(a + a.T, 2)), 0.0)
        for units in (2, 4, 8, 16, 32):
            h = blocks_of_one(net, units) if n == 1 else blocks_of_two(net.moment(), units)
            values = torch.linalg.eigvalsh(h).abs()
            condition = float(values.amax() / values.amin())
            bound = float(torch.linalg.matrix_norm(b + (units - 1) / 2 * (a + a.T), 2) / least)
            tolerance = rounding(float(len(values) ** 2), condition)
            yield Case(f"R={units}, {data}", excess(bound, condition, scale=condition), tolerance)
            yield Aside(f"cond(H), R={units}, {data}", condition)


STATEMENTS = (
    Statement(
        part="1_stationary",
        place="Theorem 2 (1)",
        text="For n >= 2 zero is a stationary point of order n - 1; the n-th order is the first that feels the data.",
        check=stationary,
        broken=partial(stationary, mid=torch.sigmoid),
    ),
    Statement(
        part="1_relu",
        place="Theorem 2 (1)",
        text="With ReLU everywhere L(t w) - L(0) is of order t^n, in the sense of Definition 4.",
        check=stationary_relu,
        broken=partial(stationary_relu, post=torch.tanh),
    ),
    Statement(
        part="1_hessian",
        place="Theorem 2 (1)",
        text="For n >= 3 the Hessian at zero is the zero matrix.",
        check=no_hessian,
        broken=partial(no_hessian, least=2),
    ),
    Statement(
        part="2_blocks",
        place="Theorem 2 (2), eqs. (8), (23)-(25)",
        text="For n = 2 the Hessian at zero is R times the same [[0, A^T], [A, 0]], A = diag(M, ..., M) P^T.",
        check=depth_two,
        broken=partial(depth_two, without_pre=True),
        note="M = sigma'_mid(0) sigma'_post(0) (Sigma^{X sigma_pre(X)} - Sigma^{Y sigma_pre(X)})",
    ),
    Statement(
        part="2_condition",
        place="Theorem 2 (2), eqs. (9), (22), (26)",
        text="Its eigenvalues are +- sigma_i(M), d R times each: cond(H) = cond(M) at any depth, and a strict saddle.",
        check=depth_invariant,
        broken=partial(depth_invariant, extra=0.01),
    ),
    Statement(
        part="3_blocks",
        place="Theorem 2 (3), eq. (10)",
        text="For n = 1 the Hessian at zero has one block B on its diagonal and one block A below it.",
        check=depth_one,
        broken=depth_one_broken,
    ),
    Statement(
        part="3_linear",
        place="Theorem 2 (3), eqs. (27)-(32)",
        text="With linear branches B = P diag(Sigma^XX) P^T and A = diag(Sigma^XX - Sigma^YX) P^T + B.",
        check=linear_depth_one,
        broken=partial(linear_depth_one, transposed=True),
    ),
    Statement(
        part="3_explodes",
        place="section 4.2, after Theorem 2",
        text="The condition number of that Hessian is at least a number that grows linearly with the number of layers.",
        check=explodes,
        broken=partial(explodes, n=2),
        note="from below, not step by step: at some depths H is nearly singular, and one layer more is better",
    ),
)
