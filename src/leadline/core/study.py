"""Study: a measurement that is no training of a RunConfig, as a function's name and its arguments."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadline.core.config import RunConfig
from leadline.core.spec import Spec

# step, name, value: a number, or a profile of numbers
Measured = tuple[int, str, float | Sequence[float]]
Measure = Iterator[Measured]


@dataclass(frozen=True)
class Study:
    """What `module:function` yields for these arguments; everything that decides its numbers is an argument.

    `seconds` is about how long it takes on one core; it is for plans only, and not part of the identity.

    >>> Study.of("leadline.recipes._nets:losses", seconds=2, depth=16, seed=3).identity
    'losses-s3-1fbec0e69c'
    """

    spec: Spec
    seconds: float = field(default=1.0, compare=False)

    @classmethod
    def of(cls, function: str, *, seconds: float = 1.0, **args: Any) -> "Study":
        return cls(Spec.of(function, **args), seconds)

    @property
    def function(self) -> str:
        return self.spec.name

    @property
    def args(self) -> dict[str, Any]:
        return self.spec.kwargs

    @property
    def seed(self) -> int:
        return int(self.args.get("seed", 0))

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of function and arguments."""
        text = json.dumps(self.spec.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def identity(self) -> str:
        """The run's folder name: function, seed and ten digits of the digest."""
        return f"{self.function.rpartition(':')[2]}-s{self.seed}-{self.digest[:10]}"

    def __str__(self) -> str:
        return str(Spec(self.function.rpartition(":")[2], self.spec.args))


Unit = RunConfig | Study
