"""What the notebooks and tests need to repeat the paper.

Data flows one way: datasets (and originals, the paper's own files) -> protocol (with features,
training, evaluation and records) -> statistics -> tables, plots (with style, pictures and
animations), claims (with measures) and scorecard -> notebooks.
"""

import warnings

# The paper allows two labels to share a target, and its experiments are repeated as they are.
warnings.filterwarnings("ignore", "labels .* share one target")
