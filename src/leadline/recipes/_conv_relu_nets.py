"""Studies of nets of three convolutions (Zaeemzadeh et al., section 3): what the middle layer does to the gradient.

    x_2 = relu(conv_1x1(x_1)), x_3 = relu(conv_3x3(x_2)), scores = mean over pixels of conv_1x1(x_3)

The middle convolution has c channels in and d out. Read is ||dE/dx_3|| / ||dE/dx_2||, with its ReLU in between.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from leadline import data as datasets
from leadline.core.study import Measure
from leadline.data import Batches
from leadline.models.init import initialise
from leadline.projections.zaeemzadeh2018 import Algorithm1


class Net(nn.Module):
    """scores(x), with the boundaries x_2 and x_3 kept."""

    def __init__(self, channels: int, c: int, d: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, c, 1, bias=False)
        self.middle = nn.Conv2d(c, d, 3, padding=1, bias=False)
        self.last = nn.Conv2d(d, classes, 1, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        before = functional.relu(self.first(x))
        after = functional.relu(self.middle(before))
        return self.last(after).mean((2, 3)), before, after


def ratios(
    *,
    data: str,
    train: int,
    pool: int,
    grid: int,
    c: int,
    outputs: Sequence[int],
    projected: bool,
    epochs: int,
    batch: int,
    rate: float,
    every: int,
    seed: int,
) -> Measure:
    """At step i, for d = outputs[i]: the mean ratio over the batches of the first and of the last epoch, and the loss.

    Projections are Algorithm 1 on `grid` x `grid` frequencies. A net whose loss is not finite has no numbers.
    """
    dataset = datasets.load(data, train=train, pool=pool)
    batches = Batches(dataset.train, batch_size=batch, seed=seed, normalise=(dataset.mean, dataset.std))
    for place, d in enumerate(outputs):
        torch.manual_seed(1000 * seed + d)
        net = Net(dataset.shape[0], c, d, dataset.classes)
        initialise(net, "he-fan-in")
        trainer = Training(net, rate=rate, every=every if projected else 0, grid=grid)
        found = [trainer.epoch(batches, number) for number in range(epochs)]
        for name, (ratio, loss) in (("start", found[0]), ("end", found[-1])):
            yield place, f"ratio/{name}", ratio
            yield place, f"loss/{name}", loss


class Training:
    """SGD as in section 4; with `every`, the convolutions in front of a ReLU are projected after so many steps."""

    def __init__(self, net: Net, *, rate: float, every: int, grid: int) -> None:
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
        if every:
            kept = {"first": net.first, "middle": net.middle}
            maps = dict.fromkeys(kept, grid)
            Algorithm1(kept, method="printed", maps=maps, every=every, relu=True).attach(self.optimizer)

    def epoch(self, batches: Batches, number: int) -> tuple[float, float]:
        """One epoch; the mean over its batches of the ratio and of the loss."""
        ratio, losses = [], []
        for images, targets in batches.epoch(number):
            scores, before, after = self.net(images)
            before.retain_grad()
            after.retain_grad()
            loss = functional.cross_entropy(scores, targets)
            if not torch.isfinite(loss):
                return math.nan, math.nan
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            assert before.grad is not None and after.grad is not None
            ratio.append(float(after.grad.norm() / before.grad.norm()))
            losses.append(float(loss.detach()))
            self.optimizer.step()
        return sum(ratio) / len(ratio), sum(losses) / len(losses)
