"""What the notebooks and tests need to repeat the paper.

Data flows one way: datasets (and originals, the paper's own files) -> protocol (with evaluation and
records) -> statistics -> tables, plots and claims (with measures) -> notebooks.
"""
