"""Residual: the one place where a branch and a skip are added; without its skip it is a plain block."""

from collections.abc import Callable

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
        self.skip = None if plain else make_skip()
        self.post = post
        self.make_skip = make_skip
        self.tapped = False

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        z = x if self.pre is None else self.pre(x)
        if not self.tapped:
            return self.join(self.branch(z), z)
        v = self.branch.get_submodule("feature")(z)
        return self.join(self.branch.get_submodule("last")(v), z), v

    def join(self, y: Tensor, z: Tensor) -> Tensor:
        """Add the skip of z, if there is one, to the branch's output y."""
        if self.skip is not None:
            y = y + self.skip(z)
        return y if self.post is None else self.post(y)

    @property
    def kind(self) -> str:
        """`plain`, `identity` or `transition` (a skip that changes the shape)."""
        if self.skip is None:
            return "plain"
        return "identity" if isinstance(self.skip, nn.Identity) else "transition"
