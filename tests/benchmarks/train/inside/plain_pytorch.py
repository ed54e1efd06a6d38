"""Train as PyTorch's tutorials do, with a DataLoader; print the images per second of each epoch but the
first.

The network and optimizer are the same as in ``tutorial.py``.

Usage: plain_pytorch.py FOLDER EPOCHS BATCH
"""

import json
import sys
import time

import torch
from baton import Baton
from digits import part
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

folder, epochs, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def tensors(name):
    images, digits = part(folder, name)
    return TensorDataset(torch.from_numpy(images.astype("float32")), torch.from_numpy(digits))


torch.manual_seed(1)
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(tensors("train"), batch_size=batch, shuffle=True)
baton, rates = Baton(), []
for _ in range(epochs):
    begun = time.monotonic()
    for images, digits in loader:
        optimizer.zero_grad()
        loss_function(model(images), digits).backward()
        optimizer.step()
    rates.append(len(loader.dataset) / (time.monotonic() - begun))
    baton.hand_on()
with torch.no_grad():
    images, digits = tensors("t10k").tensors
    accuracy = (model(images).argmax(1) == digits).float().mean().item()
print("bench:", json.dumps({"rates": rates[1:], "accuracy": accuracy}))
