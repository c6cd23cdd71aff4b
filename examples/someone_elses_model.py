"""Look at, sound and record a model that knows nothing of Leadline: PyTorch's transformer encoder, learning to sort."""

import sys

import torch
from torch.nn import TransformerEncoder, TransformerEncoderLayer
from torch.nn.functional import mse_loss

import leadline as ll

torch.manual_seed(0)
model = TransformerEncoder(
    TransformerEncoderLayer(16, 4, 32, dropout=0, batch_first=True), 12, enable_nested_tensor=False
)
x = torch.randn(32, 8, 16)
y = x.sort(dim=1).values
to = sys.argv[1] if len(sys.argv) > 1 else "runs/someone-elses-model"

print(ll.anatomy(model, x))
print(ll.sound(model, (x, y), mse_loss, "light"))

optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
with ll.Recorder(model, to, probes="light", every=5) as recorder:
    for _ in range(20):
        optimizer.zero_grad()
        loss = mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        recorder.step(loss)

print(ll.Profile.of_run(to))
