"""Networks by name: `create("resnet-110")` builds one, `list("*resnest*")` names them; torch loads only to build."""

import builtins
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.models.chain import Chain

__all__ = ["create", "list"]


def create(name: str, **options: Any) -> "Chain":
    """The network called `name`, with the options of its family (`num_classes`, `norm`, `stem`, `init`, ...).

    Any valid depth can be named, not only the listed ones.
    """
    from leadline.models.names import resolve

    return resolve(name).build(**options)


def list(pattern: str = "*") -> builtins.list[str]:
    """The names of the networks of the papers that match a shell pattern.

    >>> list("procresnet-166*")
    ['procresnet-166', 'procresnet-166-erased', 'procresnet-166-unprojected']
    """
    from leadline.models.catalog import entries

    return [entry.name for entry in entries(pattern)]
