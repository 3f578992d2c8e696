"""How property tests run here: the same examples each time, on any machine."""

from hypothesis import settings

steady = settings(deadline=None, derandomize=True)
