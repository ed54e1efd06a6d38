# OneCycleLR, mixed precision if there is a GPU, and a checkpoint to go on from
import os, sys
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset
import torch.utils.data as data_utils

EPOCHS = 4
CKPT = "schedule.ckpt"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
use_amp = device.type == "cuda"

raw = torch.load("mnist.pt")
def make(split):
    x = raw["x_" + split].float().view(-1, 784).div(255)
    return TensorDataset(x, raw["y_" + split].long())

train_loader = data_utils.DataLoader(make("train"), batch_size=64, shuffle=True, num_workers=0,
                                     pin_memory=use_amp)
test_loader = data_utils.DataLoader(make("test"), batch_size=1000)

net = nn.Sequential(
    nn.Linear(784, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
net.to(device)
optim = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(optim, max_lr=0.1, steps_per_epoch=len(train_loader), epochs=EPOCHS)
scaler = torch.cuda.amp.GradScaler(enabled=use_amp)
start = 0
if os.path.exists(CKPT):
    state = torch.load(CKPT, map_location=device)
    net.load_state_dict(state["net"])
    optim.load_state_dict(state["optim"])
    start = state["epoch"] + 1

for epoch in range(start, EPOCHS):
    net.train()
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optim.zero_grad()
        with torch.autocast(device.type, enabled=use_amp):
            loss = nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optim)
        scaler.update()
        sched.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            correct += (net(x.to(device)).argmax(1).cpu() == y).sum().item()
    print("epoch %d" % epoch, "Test accuracy: %.4f" % (correct / len(test_loader.dataset)), file=sys.stderr)
    torch.save({"net": net.state_dict(), "optim": optim.state_dict(), "epoch": epoch}, CKPT)
