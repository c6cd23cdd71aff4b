"""dense: a 3x3 convolution, norm and activation whose output is put beside the input (Chen et al., Fig. 3)."""

from leadline.models.layers import BATCH_RELU, Style, sequence
from leadline.models.residual import Dense


def dense(c_in: int, c_out: int, *, style: Style = BATCH_RELU) -> Dense:
    """x_i = [x_{i-1}, Q(x_{i-1})], Q(x) = act(norm(conv(x))) with c_out - c_in channels."""
    growth = c_out - c_in
    return Dense(sequence(conv=style.conv(c_in, growth, 3), norm=style.normalise(growth), act=style.activate()))
