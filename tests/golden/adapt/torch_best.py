import copy
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split


def get_loaders(batch_size):
    raw = torch.load('mnist.pt')
    full = TensorDataset((raw['x_train'] / 255).float().flatten(1), raw['y_train'].long())
    test = TensorDataset((raw['x_test'] / 255).float().flatten(1), raw['y_test'].long())
    n_valid = len(full) // 10
    train, valid = random_split(full, [len(full) - n_valid, n_valid])
    return {
        'train': DataLoader(train, batch_size, shuffle=True),
        'valid': DataLoader(valid, batch_size),
        'test': DataLoader(test, batch_size),
    }


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float().mean().item() for x, y in loader]
    return sum(hits) / len(hits)


def train_model(model, loaders, epochs, patience=3):
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.SGD([
        {'params': model[0].parameters(), 'lr': 0.1},
        {'params': model[2].parameters()},
    ], lr=0.05, momentum=0.9)
    best, waited = 0.0, 0
    best_weights = copy.deepcopy(model.state_dict())
    for epoch in range(epochs):
        model.train()
        for x, y in loaders['train']:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        value = accuracy(model, loaders['valid'])
        if value > best:
            best, waited = value, 0
            best_weights = copy.deepcopy(model.state_dict())
            torch.save(best_weights, 'best.pt')
        else:
            waited += 1
            if waited >= patience:
                break
    return model


model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
loaders = get_loaders(64)
model = train_model(model, loaders, 5)
model.load_state_dict(torch.load('best.pt'))
print('Test accuracy:', accuracy(model, loaders['test']))
