"""Settings of pytest for all test files."""

import pytest

# A failing assert in these files then shows its values, as in a test file.
pytest.register_assert_rewrite("helpers", "data_files")
