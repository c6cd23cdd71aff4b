"""All singular values of a convolution on a torus, beside the full-grid transforms people use."""

import harness
import numpy as np
import torch

from leadline.linalg.conv_operator import conv_operator

SHAPES = ((64, 64, 32), (64, 128, 16), (256, 256, 8))  # c, d, n
REACH = {"torch full grid, complex64": 2.2, "NumPy full grid, complex128 (Sedghi et al.)": 3.0}


def torch_full(kernel: torch.Tensor, n: int) -> torch.Tensor:
    return torch.linalg.svdvals(torch.fft.fft2(kernel, s=(n, n)).permute(2, 3, 0, 1))


def numpy_full(kernel: torch.Tensor, n: int) -> np.ndarray:
    transform = np.fft.fft2(kernel.permute(2, 3, 0, 1).double().numpy(), (n, n), axes=[0, 1])
    return np.linalg.svd(transform, compute_uv=False)


def measure(rounds: int) -> list[harness.Row]:
    rows = []
    for c, d, n in SHAPES:
        torch.manual_seed(0)
        kernel = torch.randn(d, c, 3, 3)
        operator = conv_operator(kernel, n, padding=1, padding_mode="circular")
        sides = {
            "ours": lambda operator=operator: operator.spectrum(),
            "torch full grid, complex64": lambda kernel=kernel, n=n: torch_full(kernel, n),
            "torch full grid, complex128": lambda kernel=kernel, n=n: torch_full(kernel.double(), n),
            "NumPy full grid, complex128 (Sedghi et al.)": lambda kernel=kernel, n=n: numpy_full(kernel, n),
        }
        times = harness.interleave(sides, rounds=rounds)
        exact = torch_full(kernel.double(), n).flatten().sort(descending=True).values
        error = float((operator.spectrum().sigma - exact).abs().max() / exact[0])
        note = f"ours in float64, {1e3 * times['ours'].median:.0f} ms, error {error:.0e}"
        for other, bar in {**REACH, "torch full grid, complex128": 2.2}.items():
            what = f"spectrum {c}->{d} 3x3, n={n}"
            rows.append(
                harness.ratio_row(what, top=times[other], bottom=times["ours"], bar=bar, at_most=False, note=note)
            )
    return rows


if __name__ == "__main__":
    harness.run(measure, description=__doc__)
