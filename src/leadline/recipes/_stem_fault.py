"""A study of a Procrustes ResNet under one of three projections: what its stem does to the gradient, and its taps.

    exact      the nearest kernel with equal singular values
    printed    Algorithm 1 once, eqs (8), (9) from a scaled start, cropped
    released   what the authors' program computes, which recombines real and imaginary parts as the conjugate

All three are applied after a step with probability 1/2, as in the release, drawn alike.
"""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from leadline.core.config import RunConfig
from leadline.core.study import Measure
from leadline.execute.workshop import Workshop
from leadline.models.chain import Chain
from leadline.projections import Procrustes
from leadline.projections.zaeemzadeh2018 import Algorithm1
from leadline.train.loop import stream

CALLS = 4


def stem(
    *,
    method: str,
    model: str,
    widths: Sequence[int],
    data: str,
    train: int,
    pool: int,
    batch: int,
    steps: int,
    seed: int,
) -> Measure:
    """`calls/...` at step i: on the first batch after i projections, untrained; `ratio`, `taps`, `loss` in training.

    `ratio` is that of the stem and then of every block, before the optimiser's step; `taps` the norms of the kernel's
    k x k taps.
    """
    config = RunConfig.parse(
        {
            "model": {"name": model, "args": {"widths": list(widths)}},
            "data": {"name": data, "args": {"train": train, "test": batch, "pool": pool}, "batch_size": batch},
            "training": {"steps": steps},
            "seed": seed,
        }
    )
    yield from _untrained(Workshop.build(config, torch.device("cpu")), method)
    shop = Workshop.build(config, torch.device("cpu"))
    projection = chosen(method, shop.model, shop.dataset.shape[-1], seed)
    shop.model.train()
    for step, (images, targets) in stream(shop.batches, 0, steps):
        ratio, loss = backward(shop.model, images, targets)
        yield step, "ratio", ratio
        yield step, "taps", taps(shop.model)
        yield step, "loss", loss
        shop.trainer.optimizer.step()
        shop.trainer.optimizer.zero_grad()
        projection.step()


def _untrained(shop: Workshop, method: str) -> Measure:
    projection = chosen(method, shop.model, shop.dataset.shape[-1], 0)
    images, targets = next(shop.batches.epoch(0))
    shop.model.train()
    for call in range(CALLS + 1):
        ratio, _ = backward(shop.model, images, targets)
        yield call, "calls/ratio", ratio[0]
        yield call, "calls/taps", taps(shop.model)
        shop.model.zero_grad()
        projection.project()


def chosen(method: str, model: Chain, side: int, seed: int) -> Procrustes:
    """The projection of the stem and the two transitions, whose outputs are whole, half and a quarter as wide."""
    convs = model.transitions()
    if method == "exact":
        return Procrustes(convs, every=2, schedule="random", seed=seed)
    maps = {name: side // 2**place for place, name in enumerate(convs)}
    return Algorithm1(convs, method=method, maps=maps, every=2, schedule="random", seed=seed)


def backward(model: Chain, images: Tensor, targets: Tensor) -> tuple[list[float], float]:
    """||dE/dx_{l+1}|| / ||dE/dx_l|| from the images on, and the loss; the weights have their gradients then."""
    boundaries = [images.detach().requires_grad_()]
    for part in (model.stem, *model.blocks):
        boundaries.append(part(boundaries[-1]))
        boundaries[-1].retain_grad()
    loss = functional.cross_entropy(model.head(boundaries[-1]), targets)
    loss.backward()  # type: ignore[no-untyped-call]
    norms = [float(torch.linalg.vector_norm(each.grad.double())) for each in boundaries if each.grad is not None]
    return [after / before for before, after in itertools.pairwise(norms)], float(loss.detach())


def taps(model: Chain) -> list[float]:
    """The Frobenius norm of every tap of the stem's kernel."""
    kernel = next(iter(model.transitions().values())).weight.detach()
    return kernel.square().sum((0, 1)).sqrt().flatten().tolist()
