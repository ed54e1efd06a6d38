"""An autoencoder, and a classifier of its code; each has its own optimizer."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Adam


class Encoder(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.size = size
        self.layers = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, size), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


def batches(split, size, shuffle):
    data = torch.load("mnist.pt")
    x = data[f"x_{split}"].float().reshape(-1, 784) / 255
    y = data[f"y_{split}"].long()
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=size, shuffle=shuffle)


def main(epochs=4):
    torch.manual_seed(0)
    encoder = Encoder()
    decoder, head = nn.Linear(encoder.size, 784), nn.Linear(encoder.size, 10)
    opt_ae = Adam(list(encoder.parameters()) + list(decoder.parameters()), lr=1e-3)
    opt_head = Adam(head.parameters())
    loader = batches("train", 64, True)
    test = batches("test", 1000, False)
    for epoch in range(epochs):
        for x, y in loader:
            code = encoder(x)
            loss = F.mse_loss(decoder(code), x) + F.cross_entropy(head(code), y)
            opt_ae.zero_grad(); opt_head.zero_grad()
            loss.backward()
            opt_ae.step(); opt_head.step()
        with torch.no_grad():
            good = sum((head(encoder(x)).argmax(1) == y).sum().item() for x, y in test)
        print("Test accuracy:", good / len(test.dataset), "of", encoder.size, "features")
    torch.save({"encoder": encoder.state_dict(), "head": head.state_dict()}, "two.pt")
    torch.save(decoder, "decoder.pt")


if __name__ == "__main__":
    main()
