"""A training by accelerate's Accelerator, as accelerate's documentation shows it."""

import json
import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator()
x = torch.arange(16.0).reshape(-1, 1)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(TensorDataset(x, 2 * x), 2))
for inputs, targets in loader:
    optimizer.zero_grad()
    accelerator.backward(torch.nn.functional.mse_loss(model(inputs), targets))
    optimizer.step()
total = accelerator.reduce(torch.ones(1)).item()
size = accelerator.num_processes
comm = "ok" if total == size else f"sum {total}"
print(json.dumps({"rank": accelerator.process_index, "size": size, "comm": comm}), flush=True)
os._exit(0)  # PyTorch 2.13 with Gloo may abort if it exits within 5 ms of a backward pass
