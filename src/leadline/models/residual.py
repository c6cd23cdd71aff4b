"""Where the branch and the skip of a block meet: added in Residual, side by side in Dense; plain without the skip."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Residual(nn.Module):
    """y = post(branch(z) + skip(z)) with z = pre(x); plain: y = post(branch(z)).

    Post-activation blocks have their last activation in `post`; pre-activation blocks whose skip starts after the
    first norm and activation have these in `pre`. `make_skip` builds the skip this block has, or would have.

    With `tapped`, the block returns (y, v): v is the feature that its last layer weighs (`branch` is then made of
    `feature` and `last`, v = feature(z)).
    """

    def __init__(
        self,
        branch: nn.Module,
        *,
        pre: nn.Module | None = None,
        post: nn.Module | None = None,
        make_skip: Callable[[], nn.Module] = nn.Identity,
        plain: bool = False,
    ) -> None:
        super().__init__()
        self.pre = pre
        self.branch = branch
        self.skip: nn.Module | None
        self.register_module("skip", None if plain else make_skip())
        self.post = post
        self.make_skip = make_skip
        self.tapped = False

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        z = self.before(x)
        if not self.tapped:
            return self.join(self.branch(z), z)
        v: Tensor = self.part("feature")(z)
        return self.join(self.part("last")(v), z), v

    def before(self, x: Tensor) -> Tensor:
        """z = pre(x)."""
        return x if self.pre is None else self.pre(x)

    def join(self, y: Tensor, z: Tensor) -> Tensor:
        """Add the skip of z, if there is one, to the branch's output y."""
        if self.skip is not None:
            y = y + self.skip(z)
        return y if self.post is None else self.post(y)

    def part(self, name: str) -> nn.Module:
        """A part of the branch by name."""
        return self.branch.get_submodule(name)

    @property
    def kind(self) -> str:
        """`plain`, `identity` or `transition` (a skip that changes the shape)."""
        if self.skip is None:
            return "plain"
        return "identity" if isinstance(self.skip, nn.Identity) else "transition"


class Dense(nn.Module):
    """x_i = [x_{i-1}, Q(x_{i-1})] along the channels (Chen et al., eq. (8)); plain: [0, Q(x_{i-1})]."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch
        self.skip: nn.Module | None = nn.Identity()
        self.make_skip: Callable[[], nn.Module] = nn.Identity

    def forward(self, x: Tensor) -> Tensor:
        kept = torch.zeros_like(x) if self.skip is None else self.skip(x)
        return torch.cat([kept, self.branch(x)], dim=1)
