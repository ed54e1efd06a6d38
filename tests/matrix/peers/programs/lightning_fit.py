"""A training by Lightning's Trainer, as Lightning's documentation shows it."""

import argparse
import json
import os

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Line(lightning.LightningModule):
    """Fits a line through four points."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _number):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


options = argparse.ArgumentParser()
options.add_argument("--nodes", type=int, default=1)
options.add_argument("--devices", type=int, default=1)
asked = options.parse_args()
x = torch.arange(4.0).reshape(-1, 1)
trainer = lightning.Trainer(
    accelerator="cpu",
    strategy="ddp",
    num_nodes=asked.nodes,
    devices=asked.devices,
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Line(), DataLoader(TensorDataset(x, 2 * x), batch_size=1))
total = trainer.strategy.reduce(torch.tensor(float(trainer.global_rank + 1)), reduce_op="sum").item()
size = trainer.world_size
right = total == size * (size + 1) / 2
print(json.dumps({"rank": trainer.global_rank, "size": size, "comm": "ok" if right else "wrong"}), flush=True)
os._exit(0)  # PyTorch 2.13 with Gloo may abort if it exits within 5 ms of a backward pass
