"""Family: the names a kind of network goes by, what they stand for, and how such a network is put together."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leadline.core.errors import UsageError, unknown
from leadline.core.spec import Spec
from leadline.models.chain import Chain, Source
from leadline.models.init import initialise


@dataclass(frozen=True, kw_only=True)
class Family:
    """`construct(*numbers, **options)` builds the network that `prefix-number-...-variant-...` names.

    A prefix and a variant stand for options that nobody can then give otherwise, so that a name means one thing.
    `rows` are the listed networks with the tables and figures of `paper` they appear in; `init` is the paper's start.
    """

    construct: Callable[..., Chain]
    paper: str
    init: str
    prefixes: Mapping[str, Mapping[str, Any]]
    rows: Mapping[str, str]
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    numbers: tuple[int, ...] = (1,)

    @property
    def options(self) -> list[str]:
        """What can be given when building: everything but what a prefix always decides."""
        parameters = inspect.signature(self.construct).parameters.values()
        decided = {key for preset in self.prefixes.values() for key in preset}
        return [*(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in decided), "init"]

    def __call__(self, *numbers: int, **options: Any) -> Chain:
        """Build by calling the family: `resnet(110, num_classes=10)`."""
        prefix = next(iter(self.prefixes))
        return Named("-".join([prefix, *map(str, numbers)]), self, numbers, self.prefixes[prefix]).build(**options)


@dataclass(frozen=True)
class Named:
    """A name read: its family, its numbers, and the options that the name itself fixes."""

    name: str
    family: Family
    numbers: tuple[int, ...]
    preset: Mapping[str, Any]

    def build(self, **options: Any) -> Chain:
        for key, value in options.items():
            if key not in self.family.options:
                raise unknown(f"option of {self.name}", key, self.family.options)
            if key != "init" and self.preset.get(key, value) != value:
                raise UsageError(f"{self.name} means {key}={self.preset[key]!r}; got {key}={value!r}")
        arguments = {**self.preset, **options}
        init = arguments.pop("init", None) or self.family.init
        chain = self.family.construct(*self.numbers, **arguments)
        initialise(chain, init)
        chain.init = init
        chain.spec = Spec.of(self.name, **options)
        chain.source = Source(self.family.paper, self.family.rows.get(self.name, ""))
        return chain
