"""Whitening: the k largest principal components of the inputs, each with variance one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from leadline.core.errors import UsageError
from leadline.data.dataset import Dataset, InMemory, Split

_CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Whitening:
    """z = W (x - mu), where W holds u_i^T / sqrt(lambda_i) for the k largest eigenpairs of the covariance of x."""

    centre: Tensor
    matrix: Tensor  # (k, d)

    def __call__(self, inputs: Tensor) -> Tensor:
        """The whitened inputs (N, k) in float64."""
        chunks = torch.split(inputs.flatten(1), _CHUNK)
        return torch.cat([(chunk.double() - self.centre) @ self.matrix.T for chunk in chunks])


def fit(inputs: Tensor, k: int) -> Whitening:
    """The whitening of these inputs, in float64: on them the covariance (over N) of z is the identity.

    Every u_i has its largest entry positive. A component that the inputs do not have (lambda_i <= d eps lambda_1, of
    float64) cannot be scaled to variance one: asking for it is an error.
    """
    chunks = torch.split(inputs.flatten(1), _CHUNK)
    centre = sum((chunk.double().sum(0) for chunk in chunks), start=torch.zeros(())) / len(inputs)
    scatter = sum(((c := chunk.double() - centre).T @ c for chunk in chunks), start=torch.zeros(()))
    values, vectors = torch.linalg.eigh(scatter / len(inputs))
    rank = int((values > len(values) * torch.finfo(torch.float64).eps * values[-1]).sum())
    if not 1 <= k <= rank:
        raise UsageError(f"whiten={k}: the inputs have {rank} principal components; expected 1 to {rank}")
    top, axes = values[-k:].flip(0), vectors[:, -k:].flip(1).T
    signs = axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()
    return Whitening(centre, axes * signs / top.sqrt()[:, None])


def whitened(dataset: Dataset, k: int) -> Dataset:
    """The dataset with vectors of k whitened principal components for inputs, fitted on its training inputs."""
    whitening = fit(dataset.train.inputs, k)

    def change(split: Split) -> InMemory:
        return InMemory(whitening(split.inputs), split.targets)

    return dataset.changed(change(dataset.train), change(dataset.test), whiten=k)
