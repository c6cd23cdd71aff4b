"""Condition numbers of the layers as operators: a convolution on its whole map, from its frequencies.

    kappa = sigma_max(W) / sigma_min(W),    W: R^(c n^2) -> R^(d m^2) what the layer does to a map, without its bias

On a torus (circular padding) the singular values of W are those of the d x c matrices P(u) = sum_t K_t exp(-2 pi i
u.t / n), one for each frequency u. Readings, one number per layer: `kappa`, `sigma_max`, `sigma_min`. A linear layer,
attention projection or 1x1 convolution is a single matrix. Directions that a stride skips are not counted.

Reference: Zaeemzadeh et al., Theorem 3 and eq. (7): a layer from c to d channels keeps the norm of gradients where all
of its sigma are sqrt(d / min(c, d)), that is kappa = 1; Oyedotun et al., eq. (8), for kappa.
Networks pad with zeros: their sigma_max is at most that of the operator on the infinite plane, close to this one;
their sigma_min has no closed form. Infinite means exactly singular; a sigma that is not told from zero in the dtype of
the weight makes kappa a lower bound, and the note says so.
Normal: 1.0 to 1.5 for projected transitions (Zaeemzadeh et al.'s target is 1). A 3x3 kernel with as many inputs as
outputs nearly loses some frequency: median 300 at initialisation and 600 after training, up to 2e4, in a ResNet-20 on
the embedded digits. Growth by decades along depth or training is the sign of trouble.
Cost: one forward pass of one sample for the sizes of the maps, and the spectra: about 0.6 of a training step at batch
128 for ResNet-110 and ResNet-164. Half of the frequencies are conjugates and left out; P^H P is taken from the few
coefficients of the kernel's autocorrelation instead of a Fourier transform; a 1x1 kernel has one matrix, not n^2 of
them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from leadline.core.errors import LeadlineError, UsageError
from leadline.core.when import Every, When
from leadline.linalg.conditioning import Condition, hosvd_conditions
from leadline.linalg.conv_operator import ConvOperator, conv_operator
from leadline.probes import Axis, Moment, Reading
from leadline.probes._layers import NONE, Layer, layers
from leadline.probes._passes import failure, own_pass, samples
from leadline.probes._readings import kappa, number, profile
from leadline.taps.tape import Tap, overhear

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class OperatorCondition:
    """`operations` and `largest_side` bound the cost: a layer that needs more, or is wider, is not measured."""

    when: When = Every(200)
    operations: float = 1e12
    largest_side: int = 4096
    axis: ClassVar[Axis] = "layer"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        every = layers(at.model)
        matrices = {place: layer.weight.flatten(1) for place, layer in enumerate(every) if self._is_matrix(layer)}
        known = dict(zip(matrices, hosvd_conditions(list(matrices.values())) if matrices else (), strict=True))
        maps = _map_sizes(at) if len(known) < len(every) else {}
        found = [known[k][0] if k in known else self._convolution(layer, maps) for k, layer in enumerate(every)]
        remark = "float64, circular padding" if found else ""
        yield profile("kappa", [kappa(one) for one in found], remark=remark, empty=NONE)
        if found:
            yield profile("sigma_max", [number(one, lambda c: c.sigma_max) for one in found], remark=remark)
            yield profile("sigma_min", [number(one, lambda c: c.sigma_min) for one in found], remark=remark)

    def _is_matrix(self, layer: Layer) -> bool:
        weight = layer.weight
        flat = weight.ndim == 2 or (prod(weight.shape[2:]) == 1 and getattr(layer.module, "groups", 0) == 1)
        return not layer.why and flat and min(weight.shape[:2]) <= self.largest_side

    def _convolution(self, layer: Layer, maps: Mapping[nn.Module, tuple[int, ...] | str]) -> Condition | str:
        if layer.why or not isinstance(layer.module, _ConvNd):
            width = min(layer.weight.shape[:2])
            wide = f"its smaller side is {width:,} (largest_side is {self.largest_side:,})"
            return layer.why or (wide if layer.weight.ndim == 2 else "neither a convolution nor a matrix")
        size = maps.get(layer.module, "it was not called as a module, so that the size of its map is not known")
        if isinstance(size, str):
            return size
        try:
            operator = _operator(layer.module, layer.weight, size)
            self._check(operator)
            return operator.spectrum().condition
        except LeadlineError as error:
            return str(error)

    def _check(self, operator: ConvOperator) -> None:
        rows, columns = operator.layout.matrix
        one = 20.0 * operator.groups * min(rows, columns) ** 2 * max(rows, columns)
        needed = one * max(1, prod(operator.image[1:]) // 2)
        if needed > self.operations:
            raise UsageError(f"it needs about {needed:.0e} operations (operations is {self.operations:.0e})")


def _operator(module: _ConvNd, weight: Tensor, size: tuple[int, ...]) -> ConvOperator:
    """On a torus; a transposed convolution has the singular values of the convolution it transposes."""
    transposed = isinstance(module, _ConvTransposeNd)
    sides = [n * s for n, s in zip(size, module.stride, strict=True)] if transposed else size
    options: dict[str, Any] = {"stride": module.stride, "dilation": module.dilation, "groups": module.groups}
    return conv_operator(weight, sides, padding="same", **options).on_torus()


def _map_sizes(at: Moment) -> dict[nn.Module, tuple[int, ...] | str]:
    """The size of the map every convolution meets first, from one sample in evaluation mode."""
    found: dict[nn.Module, tuple[int, ...] | str] = {}

    def before(_: str, module: nn.Module, arguments: Mapping[str | int, Any]) -> None:
        given = next(iter(arguments.values()), None)
        if isinstance(module, _ConvNd) and isinstance(given, Tensor):
            found.setdefault(module, tuple(given.shape[-len(module.kernel_size) :]))

    try:
        with own_pass(at.model, evaluate=True), overhear(at.model, before, lambda *_: None):
            samples(at.inputs, 1).call(at.model)
    except Exception as error:  # whatever somebody's model raises is the answer, not the end of their training
        for module in at.model.modules():
            found.setdefault(module, failure(error))
    return found
