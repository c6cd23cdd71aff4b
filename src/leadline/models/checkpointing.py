"""Activation checkpointing for a run of blocks: forget their insides, compute them again in the backward pass.

On a CPU with glibc before 2.38, freed aligned memory is not reused between blocks kept alive, and the process grows all
the same; the environment variable MALLOC_MMAP_THRESHOLD_=65536 gives it back, at the price of slower allocation
(benchmarks/depth_scaling.py measures both).
"""

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


def recomputed(run: Callable[..., Any], modules: Sequence[nn.Module], x: Any) -> Any:
    """run(modules, x), keeping only x: what is inside is computed again when gradients ask for it.

    The second time random numbers repeat and buffers are left alone, so every result is that of the plain pass.
    """

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), scratch_buffers(modules)

    return checkpoint(run, modules, x, use_reentrant=False, context_fn=contexts)
