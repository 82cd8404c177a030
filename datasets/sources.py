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
from fedarena.datasets.download import CifarTar, IdxFiles, UspsFiles, olivetti_faces
from fedarena.datasets.raw_file import RawFile

# Sizes and checksums are those that TensorFlow Datasets publishes for the same files (its url_checksums).
mnist = Archive(
    mnist_card.SPEC,
    IdxFiles(
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        (
            (9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            (28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            (1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            (4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ),
    ),
)
fashion_mnist = Archive(
    fashion_mnist_card.SPEC,
    IdxFiles(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        (
            (26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            (29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            (4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            (5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        ),
    ),
)
kmnist = Archive(
    kmnist_card.SPEC,
    IdxFiles(
        "https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
        (
            (18_165_135, "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4"),
            (29_497, "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17"),
            (3_041_136, "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"),
            (5_120, "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"),
        ),
    ),
)
# Nobody publishes a sha256 of these; the md5 is torchvision's.
USPS_PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
usps = Archive(
    usps_card.SPEC,
    UspsFiles(
        RawFile(USPS_PAGE + "usps.bz2", 10_000_000, "ec16c51db3855ca6c91edd34d0e9b197"),
        RawFile(USPS_PAGE + "usps.t.bz2", 10_000_000, "8ea070ee2aca1ac39742fdd1ef5ed118"),
    ),
)
cifar10 = Archive(
    cifar10_card.SPEC,
    CifarTar(
        RawFile(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
        train=tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        test=("test_batch.bin",),
        labels=1,
    ),
)
cifar100 = Archive(
    cifar100_card.SPEC,
    CifarTar(
        RawFile(
            "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
            168_513_733,
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
        train=("train.bin",),
        test=("test.bin",),
        labels=2,
    ),
)
bank_marketing = Archive(bank_marketing_card.SPEC, download_bank_marketing)
ham10000 = Archive(
    ham10000_card.SPEC,
    ByHand(
        "there is no download of this selection and scaling; the images themselves are at "
        "https://doi.org/10.7910/DVN/DBW86T",
    ),
)
olivetti = Archive(olivetti_card.SPEC, olivetti_faces)
