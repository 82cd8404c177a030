"""What the four papers print, table by table and figure by figure, and how much of it no table here holds, and why.

Counted are results: the cells of tables, and numbers of a text that stand in no table; no settings (learning rates,
noise, sizes of data sets). A test counts what the tables of `fedarena.reproduce` hold and compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A table, a figure or a passage of a paper.

    Attributes:
        where: what the paper calls it.
        numbers: results that it prints; None: a plot or a passage, which is not counted.
        left: how many of them no table here holds.
        what: which these are; "" where none is left out. Of what is not counted: what is there, and what is not.
        why: they are left out.
        tables: of `TABLES`, that hold the others.
    """

    where: str
    numbers: int | None
    left: int = 0
    what: str = ""
    why: str = ""
    tables: tuple[str, ...] = ()

    @property
    def here(self) -> int | None:
        """How many of them the tables hold; None where they are not counted."""
        return None if self.numbers is None else self.numbers - self.left


PLOT = "a plot without numbers"
TOP5 = "the paper gives the top-5 accuracy, which is not measured here; the data set is supported"
COLORECTAL = "the columns of Colorectal", "the data set is not supported"

PAPERS: dict[str, tuple[Printed, ...]] = {
    "baffle": (
        Printed("Table 1", 48, 16, "both columns of CIFAR-100, 8 accuracies each", TOP5, ("baffle/table1",)),
        Printed("Table 2", 16, 8, "both columns of CIFAR-100, 4 accuracies each", TOP5, ("baffle/table2",)),
        Printed(
            *("Table 3", 60, 60, "all: OfficeHome, 6 rows of 5 top-1 and 5 top-5 accuracies"),
            "the data set is not supported, and the top-5 accuracy is not measured here",
        ),
        Printed("Table 4", 24, tables=("baffle/table4", "baffle/table4-large")),
        Printed("Figures 2, 3", None, 0, "accuracy by round with one upload a batch; the ablations", PLOT),
        Printed("Figure 5", None, 0, "loss differences of data and of noise", PLOT),
        Printed(
            *("the text", None, 0, "K/5 times the computation, about half the traffic, 2 % from K = 2000 to 5000"),
            "rough figures in passing; no table here measures them",
        ),
    ),
    "dbcl": (
        Printed("Table 1", 20, tables=("dbcl/table1", "dbcl/table1-rest")),
        Printed("Section 6.3, property inference", 4, tables=("dbcl/property",)),
        Printed(
            *("Section 6.2, beside Table 1", None, 0, "rounds, times the plain: 2.6 to 3.6 (MLP), 0.6 to 5.6 (CNN)"),
            "ranges of ratios of Table 1's numbers, not numbers of a cell; that at c = 10 % is derived",
        ),
        Printed(
            *("Section 6.2, beside Table 1", None, 0, "words a round, times the plain: 0.5"),
            "follows from the size of the sketch; the rows of dbcl/table1 hold the bytes",
        ),
        Printed("Figure 1", None, 0, "loss and accuracy by round on CIFAR-10", PLOT),
        Printed("Figure 2", None, 0, "ROC curves of the gender of LFW's faces", PLOT),
        Printed(
            *("Figure 3", None, 0, "all but what the text says of it", PLOT),
            ("dbcl/figure3",),
        ),
        Printed("Figure 4", None, 0, "images recovered by gradient matching", "images without numbers"),
    ),
    "pbpfl": (
        Printed(
            *("Table 1", 24, 6, "both rows of APTOS (ABD)", "the data set is not supported"),
            ("pbpfl/table1",),
        ),
        Printed(
            *("Table 2", 9, 6, "the columns k = 1 and k = 10"),
            "lost in the copies of the paper at hand: two are legible, 66.24 and 61.44, but not whose they are",
            ("pbpfl/table2",),
        ),
        Printed(
            *("Table 3", 20, 20, "all: seconds of 250 iterations on the paper's GPU, 9 of them 0 or blank"),
            "seconds of another machine; ratios of six of them, which the paper does not print, are derived",
            ("pbpfl/table3",),
        ),
        Printed(
            *("Section 5.2.3, traffic", 4, 4, "all: 0.85 MB down and up (FedAvg), 0.85 down and 2.55 up (PBPFL)"),
            "they fit millions of parameters and not MB; their two ratios are derived",
            ("pbpfl/table3",),
        ),
        Printed(
            *("Section 5.2.2", 3, 3, "points by which PBPFL is below FedAvg-CE: 0.67, 3.2, 2.11"),
            "differences of Table 2's numbers, of which k = 5 alone is legible",
        ),
        Printed("Figure 3", None, 0, "accuracy by epoch, ResNet-20 and ResNet-32", PLOT),
    ),
    "two-stage": (
        Printed(
            *("Table 2", 8, 4, "the rows of Guerraoui et al. 2021"),
            "copied from that paper: another protocol on another network, at ε = 3.46 and 7.58",
            ("two-stage/table2",),
        ),
        Printed(
            *("Table 3", 4, 2, "the rows of Zhu and Ling 2022"),
            "copied from that paper: another protocol, at ε = 0.21 and 0.40",
            ("two-stage/table3",),
        ),
        Printed("Table 4", 24, 6, *COLORECTAL, ("two-stage/table4",)),
        Printed("Table 5", 40, 10, *COLORECTAL, ("two-stage/table5",)),
        Printed("Table 6", 40, 10, *COLORECTAL, ("two-stage/table6",)),
        Printed("Tables 10 to 14", 200, 50, *COLORECTAL, ("two-stage/tables10-14",)),
        Printed("Table 15", 24, 6, *COLORECTAL, ("two-stage/table15",)),
        Printed("Table 16", 24, 6, *COLORECTAL, ("two-stage/table16",)),
        Printed("Table 17", 24, 6, *COLORECTAL, ("two-stage/table17",)),
        Printed(
            *("Tables 2, 3, 15 to 17, spreads", 78, 78, "all: what stands behind a ±"),
            "the paper does not say of what; it is no result by itself",
        ),
        Printed(
            *("Figures 1, 2, 18, 21", None, 0, "all but some means of the authors' logs, at 60 % and 90 % attackers"),
            f"{PLOT}; the logs also hold runs without attackers, at other shares and learning rates, and every epoch",
            ("two-stage/figure1", "two-stage/figure2"),
        ),
        Printed(
            *("Figures 3, 4, 6 to 17, 19, 20, 22 to 38", None, 0),
            "learning rates; curves by epoch; 90, 95 and 99 % attackers; shards by Algorithm 4; TTBB of other attacks",
            PLOT,
        ),
    ),
}
"""By paper, in its order. Diagrams and tables without results are left out."""


def counted(papers: Iterable[str]) -> tuple[int, int]:
    """(results that these papers' tables and counted passages print, how many of them tables here hold)."""
    own = [one for paper in papers for one in PAPERS.get(paper, ())]
    return sum(one.numbers or 0 for one in own), sum(one.here or 0 for one in own)
