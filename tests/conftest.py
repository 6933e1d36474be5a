"""Settings of pytest for all test files, and how long hypothesis looks."""

import os

import pytest
from hypothesis import settings

# A failing assert in these files then shows its values, as in a test file.
pytest.register_assert_rewrite("helpers", "data_files")

# There is no deadline because the first call compiles.
settings.register_profile(
    "ci", max_examples=20, stateful_step_count=25, deadline=None, derandomize=True, database=None
)
settings.register_profile("nightly", max_examples=2000, stateful_step_count=40, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def matplotlib_defaults():
    """Draw without a window, and without the style of the notebooks."""
    import matplotlib
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield
    plt.close("all")
