"""Papers' tables, measured anew. A module per table:

SETTING                                 one line
PIECES                                  names of parts that are measured independently of each other
MEASURED                                columns that are averaged over seeds when shown; () shows every row
rows(piece, where, seed, progress)      the rows of one part for one seed
PUBLISHED                               where there are some: the papers' numbers, and where ours stand (`published`)
                                        (what of the papers no table holds is listed in `left_out`)
CPU_ALONE                               where there is one: why nothing of it is computed on another device
RUNS                                    where parts may be one run with those of other tables: piece -> `same_run.Run`
draw(rows, path)                        where there is one: the picture of all rows, which then hold their seed
compact(rows)                           likewise: all rows in the form in which they are printed, and notes below them
"""

TABLES = {
    "baffle/adaptive": "fedarena.reproduce.baffle_adaptive",
    "baffle/table1": "fedarena.reproduce.baffle_table1",
    "baffle/table2": "fedarena.reproduce.baffle_table2",
    "baffle/table4": "fedarena.reproduce.baffle_table4",
    "baffle/table4-large": "fedarena.reproduce.baffle_table4_large",
    "dbcl/figure3": "fedarena.reproduce.dbcl_figure3",
    "dbcl/property": "fedarena.reproduce.dbcl_property",
    "dbcl/table1": "fedarena.reproduce.dbcl_table1",
    "dbcl/table1-rest": "fedarena.reproduce.dbcl_table1_rest",
    "inference/digits": "fedarena.reproduce.inference_digits",
    "inference/epsilon": "fedarena.reproduce.inference_epsilon",
    "inversion/images": "fedarena.reproduce.inversion_images",
    "membership/lira": "fedarena.reproduce.membership_lira",
    "inversion/faces": "fedarena.reproduce.inversion_faces",
    "pbpfl/precision": "fedarena.reproduce.pbpfl_precision",
    "pbpfl/table1": "fedarena.reproduce.pbpfl_table1",
    "pbpfl/table2": "fedarena.reproduce.pbpfl_table2",
    "pbpfl/table3": "fedarena.reproduce.pbpfl_table3",
    "pbpfl/unmask": "fedarena.reproduce.pbpfl_unmask",
    "two-stage/bank": "fedarena.reproduce.two_stage_bank",
    "two-stage/figure1": "fedarena.reproduce.two_stage_figure1",
    "two-stage/figure2": "fedarena.reproduce.two_stage_figure2",
    "two-stage/table2": "fedarena.reproduce.two_stage_table2",
    "two-stage/table3": "fedarena.reproduce.two_stage_table3",
    "two-stage/table4": "fedarena.reproduce.two_stage_table4",
    "two-stage/table5": "fedarena.reproduce.two_stage_table5",
    "two-stage/table6": "fedarena.reproduce.two_stage_table6",
    "two-stage/tables10-14": "fedarena.reproduce.two_stage_tables10to14",
    "two-stage/table15": "fedarena.reproduce.two_stage_table15",
    "two-stage/table16": "fedarena.reproduce.two_stage_table16",
    "two-stage/table17": "fedarena.reproduce.two_stage_table17",
}
