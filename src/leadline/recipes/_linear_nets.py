"""Studies of linear nets trained by full-batch gradient descent on whitened images (Li et al., section 5, appendix B).

A net is called by its start: "xavier" and "orthogonal" are plain products of n matrices, "k-shortcut" has an identity
skip around every k of them and starts at 0.01 x Xavier. The loss is 1/(2m) sum |y - W x|^2 on the ten largest whitened
principal components, with one-hot targets; it is trained on the second moments, which is exact. Where a rate has to
be chosen it is the one of `rates` with the least loss at the end.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import torch
from torch import Tensor, nn

from leadline import data as datasets
from leadline.core.errors import unknown
from leadline.core.study import Measure
from leadline.linalg.hessian import spectrum
from leadline.linalg.linear_chain import Moments, descend, hessian, loss_and_gradient
from leadline.models.init import NEAR_ZERO

COMPONENTS = 10
SHORTCUTS = {"xavier": 0, "orthogonal": 0, "1-shortcut": 1, "2-shortcut": 2, "3-shortcut": 3}


@cache
def problem(data: str) -> tuple[Tensor, Tensor]:
    """Inputs (m, 10) and targets (m, 10) of the training split, in float64."""
    split = datasets.load(data, whiten=COMPONENTS, vectors=True).train
    return split.inputs, split.targets


@cache
def moments(data: str) -> Moments:
    return Moments.of(*problem(data))


def start(net: str, depth: int, seed: int) -> Tensor:
    """The weights (depth, d, d) that a net begins with."""
    if net not in SHORTCUTS:
        raise unknown("net", net, SHORTCUTS)
    draw = torch.Generator().manual_seed(1000 * seed + depth)
    weights = torch.empty(depth, COMPONENTS, COMPONENTS, dtype=torch.float64)
    for weight in weights:
        nn.init.orthogonal_(weight, generator=draw) if net == "orthogonal" else nn.init.xavier_normal_(
            weight, generator=draw
        )
    return weights * NEAR_ZERO if SHORTCUTS[net] else weights


def initial(*, data: str, net: str, depths: Sequence[int], seed: int) -> Measure:
    """Of the Hessian at the start, for every depth: |lambda|_max, |lambda|_(0.1), their ratio and the index.

    The ratio is infinite where a tenth of the eigenvalues or more is not told from zero in float64.
    """
    for depth in depths:
        found = spectrum(hessian(start(net, depth, seed), moments(data), shortcut=SHORTCUTS[net]))
        lost = found.zeros >= 0.1 * len(found.eigenvalues)
        yield depth, "ratio", float("inf") if lost else found.ratio10
        yield depth, "largest", found.largest
        yield depth, "percentile10", found.percentile10
        yield depth, "index", found.index


def final_losses(*, data: str, net: str, depth: int, seeds: int, rates: Sequence[float], epochs: int) -> Measure:
    """At step s the losses after `epochs` from start s, one for every rate; all starts and rates are one batch."""
    given, every = moments(data), torch.tensor(rates, dtype=torch.float64)
    yield 0, "optimum", float(given.lowest_loss)
    begun = torch.stack([start(net, depth, seed) for seed in range(seeds)])[:, None].expand(-1, len(rates), -1, -1, -1)
    ended = descend(begun, given, shortcut=SHORTCUTS[net], rate=every.expand(seeds, -1), steps=epochs).losses[-1]
    for seed, losses in enumerate(ended.tolist()):
        yield seed, "loss", losses


def spectra(
    *,
    data: str,
    net: str,
    depth: int,
    seed: int,
    rates: Sequence[float],
    epochs: int,
    slower: int,
    levels: Sequence[float],
) -> Measure:
    """Loss, |lambda|_max, |lambda|_(0.1) and index at the start and around the first crossing of every level.

    Levels are losses above the optimum. Interpolation between the steps to either side gives what it would with all of
    them. The rate is the best one of `epochs` divided by `slower`, for so many times the epochs.
    """
    given, shortcut = moments(data), SHORTCUTS[net]
    rate = best_rate(data, net, depth, seed, rates, epochs) / slower
    optimum = float(given.lowest_loss)
    yield 0, "optimum", optimum
    yield 0, "rate", rate
    path = descent(start(net, depth, seed), given, shortcut=shortcut, rate=rate, epochs=epochs * slower)
    for step, weights, loss in around(path, [optimum + level for level in levels]):
        found = spectrum(hessian(weights, given, shortcut=shortcut))
        yield step, "loss", loss
        yield step, "largest", found.largest
        yield step, "percentile10", found.percentile10
        yield step, "index", found.index


def around(
    path: Iterable[tuple[Tensor, float, Tensor]], levels: Sequence[float]
) -> Iterator[tuple[int, Tensor, float]]:
    """Step, weights and loss at the start and to either side of the first crossing of every level, each once."""
    left, said = set(levels), -1
    former = (-1, torch.empty(0), math.nan)
    for step, (weights, loss, _) in enumerate(path):
        low, high = sorted((former[2], loss))
        met = {level for level in left if low <= level <= high}
        here = (step, weights, loss)
        for each in (former, here) if met else (here,) if step == 0 else ():
            if each[0] > said:
                yield each
                said = each[0]
        left -= met
        former = here


def dynamics(
    *, data: str, net: str, depth: int, seed: int, rates: Sequence[float], epochs: int, slower: int, last: int
) -> Measure:
    """Loss, norm of the gradient and index at every epoch up to the `last`, at the best rate divided by `slower`."""
    given, shortcut = moments(data), SHORTCUTS[net]
    rate = best_rate(data, net, depth, seed, rates, epochs) / slower
    yield 0, "rate", rate
    path = descent(start(net, depth, seed), given, shortcut=shortcut, rate=rate, epochs=last)
    for epoch, (weights, loss, slope) in enumerate(path):
        yield epoch, "loss", loss
        yield epoch, "gradient", float(slope.norm())
        yield epoch, "index", spectrum(hessian(weights, given, shortcut=shortcut)).index


def norms(*, data: str, net: str, depth: int, seed: int, rates: Sequence[float], epochs: int, every: int) -> Measure:
    """Loss and the average Frobenius norm of the weight matrices along one run, every so many epochs."""
    rate = best_rate(data, net, depth, seed, rates, epochs)
    yield 0, "rate", rate
    path = descent(start(net, depth, seed), moments(data), shortcut=SHORTCUTS[net], rate=rate, epochs=epochs)
    for epoch, (weights, loss, _) in enumerate(path):
        if epoch % every == 0:
            yield epoch, "loss", loss
            yield epoch, "norm", float(torch.linalg.matrix_norm(weights).mean())


def best_rate(data: str, net: str, depth: int, seed: int, rates: Sequence[float], epochs: int) -> float:
    """The rate from which this start ends at the least loss."""
    begun = start(net, depth, seed).expand(len(rates), -1, -1, -1)
    every = torch.tensor(rates, dtype=torch.float64)
    ended = descend(begun, moments(data), shortcut=SHORTCUTS[net], rate=every, steps=epochs).losses[-1]
    return float(every[ended.nan_to_num(nan=torch.inf).argmin()])


def descent(
    weights: Tensor, given: Moments, *, shortcut: int, rate: float, epochs: int
) -> Iterator[tuple[Tensor, float, Tensor]]:
    """Weights, loss and gradient before the first epoch and after every one."""
    for _ in range(epochs + 1):
        loss, slope = loss_and_gradient(weights, given, shortcut=shortcut)
        yield weights, float(loss), slope
        weights = weights - rate * slope
