"""The data sets that lie in files, each with its download; a card's target names one of them."""

from __future__ import annotations

from fedarena.datasets.archive import Archive, ByHand
from fedarena.datasets.bank_marketing import bank_marketing as download_bank_marketing
from fedarena.datasets.cards import bank_marketing as bank_marketing_card
from fedarena.datasets.cards import cifar10 as cifar10_card
from fedarena.datasets.cards import cifar100 as cifar100_card
from fedarena.datasets.cards import fashion_mnist as fashion_mnist_card
from fedarena.datasets.cards import ham10000 as ham10000_card
from fedarena.datasets.cards import kmnist as kmnist_card
from fedarena.datasets.cards import mnist as mnist_card
from fedarena.datasets.cards import olivetti as olivetti_card
from fedarena.datasets.cards import usps as usps_card
from fedarena.datasets.download import FromTorchvision, olivetti_faces

mnist = Archive(mnist_card.SPEC, FromTorchvision("MNIST"))
fashion_mnist = Archive(fashion_mnist_card.SPEC, FromTorchvision("FashionMNIST"))
kmnist = Archive(kmnist_card.SPEC, FromTorchvision("KMNIST"))
usps = Archive(usps_card.SPEC, FromTorchvision("USPS"))
cifar10 = Archive(cifar10_card.SPEC, FromTorchvision("CIFAR10"))
cifar100 = Archive(cifar100_card.SPEC, FromTorchvision("CIFAR100"))
bank_marketing = Archive(bank_marketing_card.SPEC, download_bank_marketing)
ham10000 = Archive(
    ham10000_card.SPEC,
    ByHand(
        "there is no download of this selection and scaling; the images themselves are at "
        "https://doi.org/10.7910/DVN/DBW86T",
    ),
)
olivetti = Archive(olivetti_card.SPEC, olivetti_faces)
