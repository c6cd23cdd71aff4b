"""Draws the pictures of "How to read a depth profile": python docs/_pictures.py (a minute); nothing else needs it.

Four networks of 50 layers on the embedded digits, each sounded at its start and after 150 steps of the training that
`leadline demo` does.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

import leadline as ll
from leadline.data import Batches, load
from leadline.figures.series import panels
from leadline.figures.style import save, styled

INTO = Path(__file__).parent / "_static"
NETS = {
    "plain": ("plainnet-50", "none"),
    "plain, batch norm": ("plainnet-50", "batch"),
    "residual, batch norm": ("resnet-50", "batch"),
    "residual, no norm": ("resnet-50", "none"),
}
PROBES = ("gradient_norm_ratio", "collinearity", "hidden_condition", "activation_range", "weight_condition")
STEPS = 150
Read = Callable[[ll.Profile], NDArray[np.float64]]


def network(name: str, norm: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return ll.models.create(name, norm=norm, block="basic", widths=[8, 16, 32], in_channels=1)


def profiles() -> dict[str, tuple[ll.Profile, ll.Profile]]:
    """Every network's profile at its start and after its training."""
    digits = load("digits")
    batches = Batches(digits.train, batch_size=64, seed=0, normalise=(digits.mean, digits.std))
    first = next(iter(batches.epoch(0)))
    found = {}
    for label, (name, norm) in NETS.items():
        model = network(name, norm)
        start = ll.sound(model, first, cross_entropy, PROBES)
        train(model, batches)
        found[label] = (start, ll.sound(model, first, cross_entropy, PROBES))
    return found


def train(model: torch.nn.Module, batches: Batches) -> None:
    """As the demo trains; a network whose loss is no number stays as it then is."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    step = 0
    for epoch in range(STEPS):
        for inputs, targets in batches.epoch(epoch):
            loss = cross_entropy(model(inputs), targets)
            if step == STEPS or not torch.isfinite(loss):
                return
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1


def draw(found: dict[str, tuple[ll.Profile, ll.Profile]], read: Read, name: str, ylabel: str, *, log: bool) -> None:
    """One picture: the reading along depth, at the start on the left, after training on the right."""
    with styled():
        figure, both = panels(2, width=3.6, height=2.9)
        for panel, when, title in zip(both, (0, 1), ("at the start", f"after {STEPS} steps"), strict=True):
            for label, pair in found.items():
                line(panel, read(pair[when]), label)
            panel.set(title=title, xlabel="depth, in blocks")
            if log:
                panel.set_yscale("log")
        both[0].set_ylabel(ylabel)
        low, high = zip(*(panel.get_ylim() for panel in both), strict=True)
        for panel in both:
            panel.set_ylim(min(low), max(high))
        handles, labels = both[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
        save(figure, INTO / f"read-{name}.svg")
        save(figure, INTO / f"read-{name}.png", dpi=110)


def line(panel: Axes, values: NDArray[np.float64], label: str) -> None:
    """The values; what is infinite stands as a triangle at the upper edge."""
    places = np.arange(1, len(values) + 1)
    finite = np.isfinite(values) & (values != 0)
    (drawn,) = panel.plot(places, np.where(finite, values, np.nan), label=label, linewidth=1.5)
    infinite = places[np.isinf(values)]
    edge, upper = panel.get_xaxis_transform(), np.full(len(infinite), 0.98)
    panel.plot(infinite, upper, "^", color=drawn.get_color(), markersize=4, transform=edge, clip_on=False)


def main() -> None:
    found = profiles()
    draw(found, lambda p: p["gradient_norm_ratio/norm"], "gradient", "norm of the gradient behind the block", log=True)
    draw(found, lambda p: p["gradient_norm_ratio/ratio"], "ratio", "gradient norm, output over input", log=True)
    draw(found, lambda p: p["collinearity/cosine"], "cosine", "mean |cosine| between samples", log=False)
    draw(found, lambda p: p["hidden_condition/kappa/batch"], "condition", "condition number over the batch", log=True)
    draw(found, lambda p: p["activation_range/max"], "range", "largest activation", log=True)
    draw(found, lambda p: p["weight_condition/kappa"], "weights", "condition number of the layer's weights", log=True)


if __name__ == "__main__":
    main()
