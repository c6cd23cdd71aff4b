"""One Hessian-vector product of ResNet-20 at batch 128, beside one gradient and beside curvlinops."""

from collections.abc import Callable

import torch
from curvlinops import HessianLinearOperator
from harness import Row, interleave, ratio_row, run
from torch import nn

from leadline import models
from leadline.linalg.hessian import curvature_graph, hessian_operator

BATCH = 128


def measure(rounds: int) -> list[Row]:
    """In both batch-norm modes; curvlinops takes only eval (its transforms refuse the counter of the running mean)."""
    torch.manual_seed(0)
    x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    cost = nn.CrossEntropyLoss()
    rows = []
    for training in (False, True):
        model = models.create("resnet-20").train(training)
        params = list(model.parameters())
        with curvature_graph(model) as mode:
            operator = hessian_operator(cost(model(x), y), params, mode=mode)
        vector = torch.randn(operator.size)
        sides: dict[str, Callable[[], object]] = {
            "ours": lambda operator=operator, vector=vector: operator(vector),
            "one gradient": lambda model=model, params=params: torch.autograd.grad(cost(model(x), y), params),
        }
        if not training:
            theirs = HessianLinearOperator(model, cost, params, [(x, y)], check_deterministic=False)
            sides["curvlinops H @ v"] = lambda theirs=theirs, vector=vector: theirs @ vector
        times = interleave(sides, rounds=rounds)
        what = f"Hessian-vector product, ResNet-20, batch {BATCH}, {mode}-mode batch norm"
        note = f"on a kept graph; ours {1e3 * times['ours'].median:.0f} ms"
        rows.append(ratio_row(what, top=times["ours"], bottom=times["one gradient"], bar=2.6, at_most=True, note=note))
        if not training:
            other = times["curvlinops H @ v"]
            rows.append(ratio_row(what, top=other, bottom=times["ours"], bar=1.0, at_most=False, note=note))
    return rows


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=9)
