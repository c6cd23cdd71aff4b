"""Activation checkpointing for a run of blocks: forget their insides, compute them again in the backward pass."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint


@contextmanager
def scratch_buffers(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Let the modules write to copies of their buffers: a second forward pass leaves running statistics as they are."""
    originals = [
        (module, name, buffer)
        for root in modules
        for module in root.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    for module, name, buffer in originals:
        setattr(module, name, buffer.clone())
    try:
        yield
    finally:
        for module, name, buffer in originals:
            setattr(module, name, buffer)


def recomputed(modules: Sequence[nn.Module]) -> Callable[[Any], Any]:
    """The modules in a row as one step that keeps only its input; what is inside is computed twice.

    The second time random numbers repeat and buffers are left alone, so every result is that of the plain pass.
    """

    def run(x: Any) -> Any:
        for module in modules:
            x = module(x)
        return x

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), scratch_buffers(modules)

    return lambda x: checkpoint(run, x, use_reentrant=False, context_fn=contexts)
