import torch
from torch import nn

torch.manual_seed(1)
data = torch.load('mnist.pt')
X = data['x_train'].float().reshape(-1, 784) / 255
Y = data['y_train'].long()
X_test = data['x_test'].float().reshape(-1, 784) / 255
Y_test = data['y_test'].long()

model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batch_size = 50
n = len(X)

for epoch in range(4):
    perm = torch.randperm(n)
    for i in range(0, n, batch_size):
        idx = perm[i:i + batch_size]
        loss = loss_fn(model(X[idx]), Y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print('epoch', epoch, 'loss', loss.item())

with torch.no_grad():
    acc = (model(X_test).argmax(1) == Y_test).float().mean().item()
print(f'Test accuracy: {acc:.4f}')
torch.save(model.state_dict(), 'plain.pt')
