"""Norm-preserving convolutions: projecting kernels while they train, or making them so by construction."""

from leadline.projections.norm_preserving import correct, deviation, isometry, project, tangent
from leadline.projections.orthogonal_kernel import OrthogonalKernel, orthogonal
from leadline.projections.procrustes import Procrustes, Projected
from leadline.projections.shape_changes import transitions

__all__ = [
    "OrthogonalKernel",
    "Procrustes",
    "Projected",
    "correct",
    "deviation",
    "isometry",
    "orthogonal",
    "project",
    "tangent",
    "transitions",
]
