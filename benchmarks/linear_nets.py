"""Training many linear nets at once from second moments, beside a loop over nets with modules, autograd and samples."""

import torch
from harness import Row, interleave, ratio_row, run
from torch import Tensor, nn

from leadline.linalg.linear_chain import Moments, descend

DEPTH, WIDTH, SAMPLES, SHORTCUT = 16, 10, 60_000, 2
STARTS, RATES = 3, 21
STEPS, LOOPED = 200, 2
"""Epochs of the nets trained together, and of the one net trained by itself."""
WHITE = f"{SAMPLES:,} white samples, which have MNIST's size and cost"


class Unit(nn.Module):
    """x + W^2 W^1 x."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(SHORTCUT)))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def net_of(weights: Tensor) -> nn.Sequential:
    """The net with these weights (layers, d, d) as a module."""
    net = nn.Sequential(*(Unit() for _ in range(len(weights) // SHORTCUT))).to(weights.dtype)
    with torch.no_grad():
        for parameter, value in zip(net.parameters(), weights, strict=True):
            parameter.copy_(value)
    return net


def train(net: nn.Module, x: Tensor, y: Tensor, *, rate: float, steps: int) -> float:
    """Full-batch gradient descent as everybody writes it; the loss at the end."""
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net, x, y).backward()
        optimizer.step()
    with torch.no_grad():
        return float(loss(net, x, y))


def loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """1/(2m) sum |y - net(x)|^2."""
    return nn.functional.mse_loss(net(x), y, reduction="sum") / (2 * len(x))


def measure(rounds: int) -> list[Row]:
    torch.manual_seed(0)
    x, y = torch.randn(2, SAMPLES, WIDTH, dtype=torch.float64).unbind()
    moments = Moments.of(x, y)
    starts = 0.1 * torch.randn(STARTS, DEPTH, WIDTH, WIDTH, dtype=torch.float64)
    weights = starts[:, None].expand(-1, RATES, -1, -1, -1)
    rates = torch.logspace(-4, -1, RATES, dtype=torch.float64).expand(STARTS, -1)
    # on as few samples as there are columns in the moments the loop has nothing to gain from them
    few, fewer = x[:WIDTH], y[:WIDTH]
    single = (x.float(), y.float())
    sides = {
        "together": lambda: descend(weights, moments, shortcut=SHORTCUT, rate=rates, steps=STEPS),
        "loop over nets": lambda: train(net_of(starts[0]), x, y, rate=1e-3, steps=LOOPED),
        "loop over nets in float32": lambda: train(net_of(starts[0].float()), *single, rate=1e-3, steps=LOOPED),
        "loop over nets on 10 samples": lambda: train(net_of(starts[0]), few, fewer, rate=1e-3, steps=STEPS),
    }
    times = interleave(sides, rounds=rounds)
    nets = STARTS * RATES
    what = f"nets per second, linear 2-shortcut, depth {DEPTH}, width {WIDTH}, {nets} nets together"
    each = f"{1e3 * times['together'].median / nets / STEPS:.3f} ms a net and epoch"
    return [
        *(
            ratio_row(what, top=times[loop], bottom=times["together"], bar=bar, at_most=False, scale=scale, note=note)
            for loop, scale, bar, note in (
                ("loop over nets", nets * STEPS / LOOPED, 20, f"both float64, {WHITE}; ours {each}"),
                ("loop over nets in float32", nets * STEPS / LOOPED, 20, f"ours float64; {WHITE}"),
                ("loop over nets on 10 samples", nets, 10, "what batching alone gives; both float64"),
            )
        ),
        Row(
            what="the same losses",
            against="the loop, relative error",
            value=error(starts, x, y),
            bar=1e-10,
            at_most=True,
        ),
    ]


def error(starts: Tensor, x: Tensor, y: Tensor) -> float:
    """The largest relative difference of the losses after some steps."""
    ended = descend(starts, Moments.of(x, y), shortcut=SHORTCUT, rate=1e-2, steps=LOOPED).losses[-1]
    alone = [train(net_of(start), x, y, rate=1e-2, steps=LOOPED) for start in starts]
    return float((ended / torch.tensor(alone, dtype=ended.dtype) - 1).abs().max())


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
