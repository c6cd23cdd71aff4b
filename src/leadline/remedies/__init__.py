"""Remedies: changes to your own model or optimiser, one per file; each says what it changed and can be undone.

`apply(model, "zero-last-norm", batch)` changes the model in place; `prove` trains copies of it with and without. torch
loads only then.
"""

from typing import TYPE_CHECKING, Any

from leadline.core import plugins

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from leadline.remedies._proof import Proof
    from leadline.remedies._treatment import Change

__all__ = ["apply", "names", "prove"]


def names() -> tuple[str, ...]:
    """Every remedy.

    >>> names()[:2]
    ('a-resnest-heads', 'add-identity-skips')
    """
    return tuple(name.replace("_", "-") for name in plugins.names("leadline.remedies"))


def apply(
    model: "nn.Module", name: str, batch: Any = None, optimizer: "Optimizer | None" = None, **options: Any
) -> "Change":
    """Apply a remedy; the Change that comes back prints what was changed and has `undo`.

    The batch is what the model's forward takes, with or without targets: most remedies run the model once to see how
    it is wired. Parameters that a remedy adds are added to the optimiser, or left for you to add (`parameters`).
    What torch.compile made of models before is compiled anew at its next call.
    """
    from leadline.remedies._treatment import treat

    return treat(model, name, batch, optimizer, options)


def prove(
    model: "nn.Module", batch: Any, loss_fn: Any, optimizer: "Optimizer | None" = None, **options: Any
) -> "Proof":
    """Train copies of the model for a few steps, as it is and under each remedy; the Proof prints what came of it.

    `among` are the remedies to try, or the Diagnosis that proposes them; `batches`, `steps`, `budget` (seconds) and
    `seed` are the same for all. The model and its optimiser are left as they are.
    """
    proof: Proof = plugins.module("leadline.execute", "prove", kind="part").prove(
        model, batch, loss_fn, optimizer, **options
    )
    return proof
