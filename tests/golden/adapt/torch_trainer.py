import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, split):
        data = torch.load("mnist.pt")
        self.images = data[f"x_{split}"].float().flatten(1) / 255
        self.labels = data[f"y_{split}"].long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Trainer:
    def __init__(self, model, train_set, test_set, config):
        self.config = config
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = model.to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["lr"], weight_decay=1e-4)
        self.criterion = nn.CrossEntropyLoss()
        self.train_loader = DataLoader(train_set, config["batch"], shuffle=True, drop_last=True)
        self.test_loader = DataLoader(test_set, 512, shuffle=False)
        self.best = 0.0

    def train_epoch(self):
        self.model.train()
        running = 0.0
        for images, labels in self.train_loader:
            images, labels = images.to(self.device), labels.to(self.device)
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.model(images), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            running += loss.item() * len(labels)
        return running / len(self.train_loader.dataset)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits = sum((self.model(x.to(self.device)).argmax(1).cpu() == y).sum().item() for x, y in self.test_loader)
        return hits / len(self.test_loader.dataset)

    def save(self, name):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(state, os.path.join(self.config["out"], name))

    def fit(self):
        os.makedirs(self.config["out"])
        for _ in range(self.config["epochs"]):
            loss = self.train_epoch()
            accuracy = self.evaluate()
            print(f"loss {loss:.4f} Test accuracy: {accuracy:.4f}")
            if accuracy > self.best:
                self.best = accuracy
                self.save("best.pt")


if __name__ == "__main__":
    config = dict(lr=1e-3, batch=64, epochs=4, out="trainer-out")
    net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    trainer = Trainer(net, Digits("train"), Digits("test"), config)
    trainer.fit()
    print("parameters:", sum(p.numel() for p in trainer.model.parameters()), trainer.model[0].in_features)
