"""Widening to float64, where the device has it."""

import torch
from torch import Tensor


def widened(tensor: Tensor) -> Tensor:
    """In float64 or complex128: on its own device, or on the CPU where the device has no such numbers.

    >>> widened(torch.ones(2, dtype=torch.complex64)).dtype
    torch.complex128
    """
    here = tensor.cpu() if tensor.device.type == "mps" else tensor
    return here.to(torch.promote_types(here.dtype, torch.float64))
