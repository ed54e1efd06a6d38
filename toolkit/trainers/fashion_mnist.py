"""Train the MNIST networks on images of clothes: ``python -m toolkit.trainers.fashion_mnist``.

Fashion-MNIST has the file format of MNIST, but its images are harder to classify than digits (Xiao, Rasul and
Vollgraf 2017, arXiv:1708.07747).
"""

from dataclasses import replace

from toolkit.trainers import mnist_cnn
from toolkit.trainers.command import run

TRAINER = replace(mnist_cnn.TRAINER, name="fashion-mnist", data="fashion-mnist")

if __name__ == "__main__":
    run(TRAINER)
