"""Cards and options of the partitions."""

from dataclasses import dataclass

from fedarena.core.card import Card
from fedarena.core.options import option


@dataclass(frozen=True)
class DirichletOptions:
    """Options of `dirichlet`."""

    alpha: float = option(0.5, "concentration α: small is skewed, large is even", above=0)
    min_size: int = option(1, "samples that each client gets at least; draws that give fewer are repeated", low=1)
    balanced: bool = option(
        False, "whether a client that holds more than N/n samples gets none of the classes that follow", listed=False
    )


@dataclass(frozen=True)
class ClassGroupsOptions:
    """Options of `class-groups`."""

    groups: int = option(2, "how many groups the clients form", low=1)
    samples: int | None = option(None, "samples that each client gets; none: as many as there are for everyone", low=1)


@dataclass(frozen=True)
class FewOptions:
    """Options of `few`."""

    samples: int = option(50, "samples that each client gets", low=1)


@dataclass(frozen=True)
class PathologicalOptions:
    """Options of `pathological`."""

    classes: int = option(2, "c, the shards that each client gets, each of one class or of two neighbours", low=1)


@dataclass(frozen=True)
class SimilarityOptions:
    """Options of `similarity`."""

    share: float = option(0.33, "share γ of samples that are alike for all clients; 0: all are sorted", low=0, high=1)


IID = Card(
    name="iid",
    kind="partition",
    title="Uniform: a random permutation cut into equal shards",
    target="fedarena.datasets.partitions.iid:split",
    paper="Communication-Efficient Learning of Deep Networks from Decentralized Data (AISTATS)",
    authors="McMahan, Moore, Ramage, Hampson, Agüera y Arcas",
    year=2017,
    url="https://arxiv.org/abs/1602.05629",
    equations="Section 3, IID",
    departures=("Where the clients do not divide the samples, sizes differ by one.",),
)

COPIES = Card(
    name="copies",
    kind="partition",
    version=2,
    title="Copies: every client holds the same share of the data",
    target="fedarena.datasets.partitions.copies:split",
    paper="Practical and Bilateral Privacy-preserving Federated Learning",
    authors="Feng, Yang, Fang, Xia, Tang",
    year=2020,
    url="https://arxiv.org/abs/2002.09843",
    equations="not in the paper: what the released code for Bank Marketing does by mistake with three clients or more",
    departures=(
        "Client i of n is to start at row i·⌊N/n⌋. The code takes for N the number of keys of a dictionary, 2. With "
        "n ≥ 3 every client starts at row 0, and with n = 2 the second starts one row after the first.",
        "The code takes the rows in the order of its file, and one row less, ⌊N/n⌋ − 1; here they are shuffled.",
    ),
    facts=(("left out", "all but ⌊N/n⌋ of the N training samples belong to no client"),),
)

CLASS_GROUPS = Card(
    name="class-groups",
    kind="partition",
    title="Groups of clients: each group holds classes of its own",
    target="fedarena.datasets.partitions.class_groups:split",
    options=ClassGroupsOptions,
    paper="Byzantine-Robust Decentralized Learning via ClippedGossip",
    authors="He, Karimireddy, Jaggi",
    year=2022,
    url="https://arxiv.org/abs/2202.01545",
    equations="the authors' code (codes/sampler.py, DumbbellSampler) with noniid_percent = 1: the digits 0 to 4 in one "
    "clique, 5 to 9 in the other",
    departures=(
        "The code has two groups, whose clients share out as many samples as the smaller group has. Here the number "
        "of groups is an option, and so is that of a client's samples.",
        "Where the groups do not divide the classes or the clients, the first groups get one more.",
    ),
    facts=(
        ("groups", "the first clients form the first group, which holds the first classes, and so on"),
        ("left out", "what a group has beyond the size of the shards belongs to no client"),
    ),
)

DIRICHLET = Card(
    name="dirichlet",
    kind="partition",
    title="Label skew: each class shared out by Dirichlet(α)",
    target="fedarena.datasets.partitions.dirichlet:split",
    options=DirichletOptions,
    paper="Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
    authors="Hsu, Qi, Brown",
    year=2019,
    url="https://arxiv.org/abs/1909.06335",
    equations="Section 3",
    departures=(
        "The paper draws a mix of classes for each client, all clients of one size. Here, as in Yurochkin et al. "
        "(2019) and most later benchmarks, a mix of clients is drawn for each class, which makes sizes unequal too. "
        "The code of Yurochkin et al. does what balanced=true does, and so does Flower unless told otherwise.",
    ),
)

FEW = Card(
    name="few",
    kind="partition",
    title="Few: a uniform partition of a small part of the data",
    target="fedarena.datasets.partitions.few:split",
    options=FewOptions,
    departures=("Not from a paper: a model that is to overfit needs few samples, whatever the data set.",),
    facts=(("left out", "all but clients·samples of the N training samples belong to no client"),),
)

PATHOLOGICAL = Card(
    name="pathological",
    kind="partition",
    title="Label skew: each client holds a few shards of the sorted samples",
    target="fedarena.datasets.partitions.pathological:split",
    options=PathologicalOptions,
    paper="Communication-Efficient Learning of Deep Networks from Decentralized Data (AISTATS)",
    authors="McMahan, Moore, Ramage, Hampson, Agüera y Arcas",
    year=2017,
    url="https://arxiv.org/abs/1602.05629",
    equations="Section 3, non-IID: 200 shards of 300 digits, two for each of 100 clients",
    departures=("Where clients times shards do not divide the samples, shards differ in size by one.",),
    facts=(
        (
            "classes of a client",
            "c or fewer, if every class divides into whole shards; a shard that begins in one class and ends in the "
            "next adds one",
        ),
    ),
)

SIMILARITY = Card(
    name="similarity",
    kind="partition",
    title="Label skew by similarity: a share alike, the rest sorted by class",
    target="fedarena.datasets.partitions.similarity:split",
    options=SimilarityOptions,
    paper="SCAFFOLD: Stochastic Controlled Averaging for Federated Learning (ICML)",
    authors="Karimireddy, Kale, Mohri, Reddi, Stich, Suresh",
    year=2020,
    url="https://arxiv.org/abs/1910.06378",
    equations="Section 7, s % similar data",
    departures=("Sizes differ by two at most where the clients do not divide the samples.",),
    facts=(("used by", "ByzFL's benchmark, with γ = 1, .66, .33 and 0"),),
)

SORTED = Card(
    name="sorted",
    kind="partition",
    title="Sorted: each client holds a block of neighbours, by class",
    target="fedarena.datasets.partitions.sorted:split",
    paper="SCAFFOLD: Stochastic Controlled Averaging for Federated Learning (ICML)",
    authors="Karimireddy, Kale, Mohri, Reddi, Stich, Suresh",
    year=2020,
    url="https://arxiv.org/abs/1910.06378",
    equations="Section 7, 0 % similar data",
    departures=("Sizes differ by one where the clients do not divide the samples.",),
    facts=(("the same as", "similarity with share=0"),),
)

ALGORITHM4 = Card(
    name="algorithm4",
    kind="partition",
    title="Label skew in equal shards: the two-stage paper's Algorithm 4",
    target="fedarena.datasets.partitions.algorithm4:split",
    paper="Practical Differentially Private and Byzantine-resilient Federated Learning (SIGMOD)",
    authors="Xiang, Wang, Lin, Wang",
    year=2023,
    url="https://arxiv.org/abs/2304.09762",
    equations="Algorithm 4 (GetNonIID)",
    departures=(
        "The paper cuts shards of ⌈N/n⌉, which leaves the last workers short or without data; here sizes differ "
        "by at most one. The two agree where n divides N.",
        "Samples of a class are shuffled before they are shared out; the paper does not say.",
    ),
)

DOMAINS = Card(
    name="domains",
    kind="partition",
    title="Feature skew: every client holds data of one domain",
    target="fedarena.datasets.partitions.domains:split",
    paper="Does Federated Learning Really Need Backpropagation?",
    authors="Feng, Pang, Du, Chen, Yan, Lin",
    year=2023,
    url="https://arxiv.org/abs/2301.12195",
    equations="Section 4, feature non-iid: OfficeHome, 4 domains with 10 clients each",
    departures=(
        "The paper has as many clients in every domain. Where the domains do not divide the clients, the first domains "
        "get one client more here.",
    ),
    facts=(
        ("needs", "a data set with the domain of each sample"),
        ("clients", "take turns over the domains: client c holds domain c mod D, of D domains"),
    ),
)
