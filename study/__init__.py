"""The map: what the notebooks and tests need to repeat the paper, in the order of the data.

A room imports only rooms that stand before it.

Run
    profile     the size of all runs: the paper's, or quick ones to try things out
    keep        what was computed is kept in build/: its key, its file, and when it is stale
    shipped     the files of the data sets that ship with the project
    originals   the paper's own files of the benchmarks that may not ship
    datasets    the data sets, what the paper printed about them, and their splits
    scores      the metrics of a run
    features    a split, mapped once for all methods that share the map
    training    one method learns one stream
    protocol    the paper's protocol: many runs, kept; the command line

Judge
    statistics  the rule: intervals, margins and verdicts on values and orders
    select      the values of records by case and seed, and what the paper prints beside them
    measures    what a claim speaks of, measured from records
    printed     what the paper's own numbers say about a claim
    claims      the claims of the paper, judged
    tables      records as tables: plain, HTML and LaTeX
    scorecard   all verdicts, kept, counted and shown

Show
    style       colours, panels and legends of figures
    pictures    pictures without records: target codes, neighbours, dots
    figures     the figures of records: means over seeds, and curves
    timing      CPU seconds of one core
"""

import warnings

# The paper allows two labels to share a target, and its experiments are repeated as they are.
warnings.filterwarnings("ignore", "labels .* share one target")
