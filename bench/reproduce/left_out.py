"""The results that the four papers print, by table and figure, how many of them no table here holds, and why.

Results are counted: the cells of tables, and numbers in the text that are in no table. Settings (learning rates, noise,
sizes of data sets) are not counted. A test compares the counts with what the tables of `fedarena.reproduce` hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A table, a figure or a passage of a paper.

    Attributes:
        where: what the paper calls it.
        numbers: how many results it prints; None for a plot or a passage, which is not counted.
        left: how many of the results no table here holds.
        what: which results these are; "" if none is left out. For what is not counted: what is there, and what is not.
        why: the reason why they are left out.
        tables: the tables that hold the others.
    """

    where: str
    numbers: int | None
    left: int = 0
    what: str = ""
    why: str = ""
    tables: tuple[str, ...] = ()

    @property
    def here(self) -> int | None:
        """The number of results that tables here hold; None if they are not counted."""
        return None if self.numbers is None else self.numbers - self.left


PLOT = "a plot without numbers"
LOGS = "a plot whose numbers the authors' logs hold; means of the last epoch are on these pages"
TOP5 = "the paper gives the top-5 accuracy, which is not measured here; the data set is supported"


def _without_colorectal(where: str, numbers: int, left: int, table: str) -> Printed:
    return Printed(
        where=where,
        numbers=numbers,
        left=left,
        what="the columns of Colorectal",
        why="the data set is not supported",
        tables=(table,),
    )


PAPERS: dict[str, tuple[Printed, ...]] = {
    "baffle": (
        Printed(
            where="Table 1",
            numbers=48,
            left=16,
            what="both columns of CIFAR-100, 8 accuracies each",
            why=TOP5,
            tables=("baffle/table1",),
        ),
        Printed(
            where="Table 2",
            numbers=16,
            left=8,
            what="both columns of CIFAR-100, 4 accuracies each",
            why=TOP5,
            tables=("baffle/table2",),
        ),
        Printed(
            where="Table 3",
            numbers=60,
            left=60,
            what="all: OfficeHome, 6 rows of 5 top-1 and 5 top-5 accuracies",
            why="the data set is not supported, and the top-5 accuracy is not measured here",
        ),
        Printed(where="Table 4", numbers=24, tables=("baffle/table4", "baffle/table4-large")),
        Printed(
            where="Figures 2, 3",
            numbers=None,
            left=0,
            what="every round but the last with one upload a batch; CIFAR-100",
            why=PLOT,
            tables=("baffle/figure2", "baffle/figure3"),
        ),
        Printed(
            where="Figure 5",
            numbers=None,
            left=0,
            what="the histograms of loss differences of data and of noise; two-sample statistics are on these pages",
            why=PLOT,
            tables=("baffle/figure5",),
        ),
        Printed(
            where="Section 4.1.4, GroupNorm",
            numbers=None,
            left=0,
            what="BatchNorm with running statistics, which no model here has",
            why="a claim without numbers",
            tables=("baffle/guideline4",),
        ),
        Printed(where="Section 2, FedZO", numbers=1, tables=("baffle/fedzo",)),
        Printed(
            where="the text",
            numbers=None,
            left=0,
            what="about half the traffic; K/5 times the computation and 2 % from K = 2000 to 5000 are on these pages",
            why="a rough figure in passing, which follows from sizes; rows of other tables hold the bytes",
            tables=("baffle/compute", "baffle/figure2"),
        ),
    ),
    "dbcl": (
        Printed(where="Table 1", numbers=20, tables=("dbcl/table1", "dbcl/table1-rest")),
        Printed(where="Section 6.3, property inference", numbers=4, tables=("dbcl/property",)),
        Printed(
            where="Section 6.2, beside Table 1",
            numbers=None,
            left=0,
            what="rounds, times the plain: 2.6 to 3.6 (MLP), 0.6 to 5.6 (CNN)",
            why="ranges of ratios of Table 1's numbers, not numbers of a cell; that at c = 10 % is derived",
        ),
        Printed(
            where="Section 6.2, beside Table 1",
            numbers=None,
            left=0,
            what="words a round, times the plain: 0.5",
            why="follows from the size of the sketch; the rows of dbcl/table1 hold the bytes",
        ),
        Printed(
            where="Section 1, sketches of gradients",
            numbers=None,
            left=0,
            what="SEGA and Li et al. 2019, which it names; FetchSGD stands for them",
            why="a claim without numbers",
            tables=("dbcl/gradient-sketches",),
        ),
        Printed(where="Figure 1", numbers=None, left=0, what="loss and accuracy by round on CIFAR-10", why=PLOT),
        Printed(where="Figure 2", numbers=None, left=0, what="ROC curves of the gender of LFW's faces", why=PLOT),
        Printed(
            where="Figure 3",
            numbers=None,
            left=0,
            what="all but what the text says of it",
            why=PLOT,
            tables=("dbcl/figure3",),
        ),
        Printed(
            where="Figure 4",
            numbers=None,
            left=0,
            what="images recovered by gradient matching",
            why="images without numbers",
        ),
    ),
    "pbpfl": (
        Printed(
            where="Table 1",
            numbers=24,
            left=6,
            what="both rows of APTOS (ABD)",
            why="the data set is not supported",
            tables=("pbpfl/table1",),
        ),
        Printed(
            where="Table 2",
            numbers=9,
            left=6,
            what="the columns k = 1 and k = 10",
            why="lost in the copies of the paper at hand: two are legible, 66.24 and 61.44, but not whose they are",
            tables=("pbpfl/table2",),
        ),
        Printed(
            where="Table 3",
            numbers=20,
            left=20,
            what="all: seconds of 250 iterations on the paper's GPU, 9 of them 0 or blank",
            why="seconds of another machine; ratios of six of them, which the paper does not print, are derived",
            tables=("pbpfl/table3",),
        ),
        Printed(
            where="Section 5.2.3, traffic",
            numbers=4,
            left=4,
            what="all: 0.85 MB down and up (FedAvg), 0.85 down and 2.55 up (PBPFL)",
            why="they fit millions of parameters and not MB; their two ratios are derived",
            tables=("pbpfl/table3",),
        ),
        Printed(
            where="Section 5.2.2",
            numbers=3,
            left=3,
            what="points by which PBPFL is below FedAvg-CE: 0.67, 3.2, 2.11",
            why="differences of Table 2's numbers, of which k = 5 alone is legible",
        ),
        Printed(where="Figure 3", numbers=None, left=0, what="accuracy by epoch, ResNet-20 and ResNet-32", why=PLOT),
    ),
    "two-stage": (
        Printed(
            where="Table 2",
            numbers=8,
            left=4,
            what="the rows of Guerraoui et al. 2021",
            why="copied from that paper: another protocol on another network, at ε = 3.46 and 7.58",
            tables=("two-stage/table2",),
        ),
        Printed(where="Table 3", numbers=4, tables=("two-stage/table3", "two-stage/sign-rules")),
        _without_colorectal("Table 4", 24, 6, "two-stage/table4"),
        _without_colorectal("Table 5", 40, 10, "two-stage/table5"),
        _without_colorectal("Table 6", 40, 10, "two-stage/table6"),
        _without_colorectal("Tables 10 to 14", 200, 50, "two-stage/tables10-14"),
        _without_colorectal("Table 15", 24, 6, "two-stage/table15"),
        _without_colorectal("Table 16", 24, 6, "two-stage/table16"),
        _without_colorectal("Table 17", 24, 6, "two-stage/table17"),
        Printed(
            where="Tables 2, 3, 15 to 17, spreads",
            numbers=78,
            left=78,
            what="all: what stands behind a ±",
            why="the paper does not say of what; it is no result by itself",
        ),
        Printed(
            where="Figures 1, 2, 6 to 18, 21",
            numbers=None,
            left=0,
            what="from 20 to 99 % attackers: Colorectal; shards by Algorithm 4 under attack; every epoch but the last",
            why=LOGS,
            tables=("two-stage/figure1", "two-stage/figure2", "two-stage/logs-alone", "two-stage/logs-shares"),
        ),
        Printed(
            where="Figures 3, 20, 23, 26, 29, 32",
            numbers=None,
            left=0,
            what="learning rates on Colorectal, and under other attacks than label flip",
            why=LOGS,
            tables=("two-stage/logs-rates", "two-stage/claim6"),
        ),
        Printed(
            where="Claim 1",
            numbers=None,
            left=0,
            what="its proof is a thought experiment; clipping is compared on USPS and Fashion, not on MNIST",
            why="a claim without numbers",
            tables=("two-stage/claim1",),
        ),
        Printed(
            where="Figures 4, 19, 22, 24, 25, 27, 28, 30, 31, 33 to 38",
            numbers=None,
            left=0,
            what="late attackers: Colorectal; ε = 1, 1/2 and 1/4; shards by Algorithm 4; every epoch but the last",
            why=LOGS,
            tables=("two-stage/logs-ttbb",),
        ),
    ),
}
"""The items of each paper, in its order. Diagrams and tables without results are left out."""


def counted(papers: Iterable[str]) -> tuple[int, int]:
    """(number of results that the tables and counted passages print, how many of them tables here hold)."""
    own = [one for paper in papers for one in PAPERS.get(paper, ())]
    return sum(one.numbers or 0 for one in own), sum(one.here or 0 for one in own)
