"""Muon for the kernels of a residual network, AdamW for the rest, transitions kept norm-preserving: all recorded."""

import sys

import torch
from torch.nn.functional import cross_entropy

import leadline as ll
from leadline.data import Batches, load
from leadline.integrations.muon import Muon, divided

torch.manual_seed(0)
model = ll.models.create("procresnet-22", widths=[4, 8, 8], in_channels=1)
hidden, others = divided(model)
optimizers = [Muon(hidden, lr=0.01), torch.optim.AdamW(others, lr=3e-3)]
kept = {id(parameter) for group in hidden for parameter in group["params"]}
transitions = {name: conv for name, conv in ll.transitions(model).items() if id(conv.weight) in kept}
procrustes = ll.Procrustes(transitions).attach(optimizers[0])

to = sys.argv[1] if len(sys.argv) > 1 else "runs/muon-and-procrustes"
with ll.Recorder(model, to, every=4) as recorder:
    for images, labels in Batches(load("digits", train=320).train, batch_size=16, dtype=torch.float32).epoch(0):
        loss = cross_entropy(model(images), labels)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        recorder.step(loss)
        model.zero_grad()

print(f"loss of the last batch: {loss.item():.3f}")
print(f"farthest from norm-preserving: {max(procrustes.deviations().values()):.1e}")
print(ll.Profile.of_run(to))
