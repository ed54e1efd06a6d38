"""Train ResNet50 on random images with the trainers' loop for PyTorch or JAX; print the speed of each step.

Usage: resnet50.py ddp|jax BATCH   (rank 0 prints the images per second of all ranks)
"""

import sys
from functools import partial

from toolkit.trainers.data.synthetic import samples
from toolkit.trainers.learning.policy import Learning
from toolkit.trainers.ranks.world import open_world
from toolkit.trainers.training.checkpoint import EpochPart

SIDE, CLASSES, STEPS = 224, 1000, 1_000_000
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Filters, blocks and stride of each stage (He et al. 2015, arXiv:1512.03385, table 1)."""


def torch_model():
    from torch import nn

    def convolution(before, filters, size=1, stride=1):
        layer = nn.Conv2d(before, filters, size, stride, padding=size // 2, bias=False)
        return [layer, nn.BatchNorm2d(filters)]

    class Block(nn.Module):
        def __init__(self, before, filters, stride):
            super().__init__()
            self.inner = nn.Sequential(
                *(*convolution(before, filters), nn.ReLU(), *convolution(filters, filters, 3, stride)),
                *(nn.ReLU(), *convolution(filters, 4 * filters)),
            )
            widened = stride > 1 or before != 4 * filters
            shortcut = convolution(before, 4 * filters, 1, stride) if widened else []
            self.shortcut = nn.Sequential(*shortcut)

        def forward(self, inputs):
            return nn.functional.relu(self.inner(inputs) + self.shortcut(inputs))

    class Scale(nn.Module):
        def forward(self, images):
            return images.permute(0, 3, 1, 2).float() / 127.5 - 1

    layers, before = [Scale(), *convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for filters, blocks, stride in STAGES:
        for block in range(blocks):
            layers.append(Block(before, filters, 1 if block else stride))
            before = 4 * filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


def jax_model():
    import jax

    from toolkit.trainers.models import jaxlayers as layers

    rectified = layers.function(layers.relu)

    def convolution(before, filters, size=1, stride=1):
        layer = layers.convolution(before, filters, size, stride, padding="SAME", bias=False, normal=True)
        return [layer, layers.normalisation(filters)]

    def block(before, filters, stride):
        inner = [*convolution(before, filters), rectified, *convolution(filters, filters, 3, stride)]
        widened = stride > 1 or before != 4 * filters
        shortcut = convolution(before, 4 * filters, 1, stride) if widened else []
        inner += [rectified, *convolution(filters, 4 * filters)]
        return layers.residual(layers.sequential(*inner), layers.sequential(*shortcut))

    def pool(images):
        around = ((0, 0), (1, 1), (1, 1), (0, 0))
        return jax.lax.reduce_window(images, -jax.numpy.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), around)

    parts = [layers.function(lambda images: images.astype("float32") / 127.5 - 1)]
    parts += [*convolution(3, 64, 7, 2), rectified, layers.function(pool)]
    before = 64
    for filters, blocks, stride in STAGES:
        for number in range(blocks):
            parts.append(block(before, filters, 1 if number else stride))
            before = 4 * filters
    return layers.sequential(*parts, layers.function(layers.mean_of_image), layers.linear(before, CLASSES))


def main(strategy, batch):
    world = open_world(strategy)
    if strategy == "jax":
        from toolkit.trainers.frameworks import jax as framework
        from toolkit.trainers.training.jaxloop import JaxLoop as Loop

        model = jax_model
    else:
        from toolkit.trainers.frameworks import pytorch as framework
        from toolkit.trainers.training.torchloop import TorchLoop as Loop

        model = torch_model
    framework.prepare_devices(world)
    framework.seed(1)
    # An epoch is one step, because the data set has as many images as a batch of all ranks.
    images = batch * world.size
    data = samples((SIDE, SIDE, 3), CLASSES, images)
    loop = Loop(model, data, world, Learning(learning_rate=0.01), batch=batch, epochs=STEPS, seed=1)
    train = partial(loop.epoch, passes=1, part=EpochPart(), pause=lambda _, steps: steps)
    for number in range(1, STEPS + 1):
        seconds = train(number - 1).seconds
        if world.rank == 0:
            print(f"{number}/{STEPS}  {seconds:.3f} s  {images / seconds:.2f} images/s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
