"""Leadline sounds the depth of neural networks: where signal, gradient or curvature dies, and what keeps it alive."""

from leadline.core.version import VERSION as __version__

__all__ = ["__version__"]
