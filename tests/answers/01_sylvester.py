"""Answers of students to the checks of 01_sylvester. The format is in test_exercises.py."""


# %% wrong sylvester: .
def sylvester(n):
    return np.ones((n, n), int)
