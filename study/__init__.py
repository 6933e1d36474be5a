"""What the notebooks and tests need to repeat the paper.

Data flows one way: datasets (and originals, the paper's own files) -> protocol (with features,
training, evaluation and records) -> selection and statistics -> tables, plots (with style, curves
and pictures), claims (with measures) and scorecard -> notebooks.
"""
