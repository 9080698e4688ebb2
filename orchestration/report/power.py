"""How many tasks would settle a difference of the observed size."""

from __future__ import annotations

import math

LEVEL = 0.05
"""Of two-sided tests."""
POWER = 0.8
_ROUNDING = 1e-6  # of the tasks' differences


def tasks_to_resolve(difference: float, mean_square: float, level: float = LEVEL) -> int | None:
    """Tasks at which a paired test finds the observed effect in four of five repetitions.

    The tests compare the sum of the tasks' differences with the sums under random signs, whose variance a task adds
    its squared difference to; under the observed effect the variance is less by the squared mean. With the normal
    approximation of both this is the sample size of McNemar's test by Connor (1987), where ``mean_square`` is the
    share of tasks solved by one method alone, and nearly that of the paired t test elsewhere.

    Args:
        difference: mean difference of the tasks.
        mean_square: mean squared difference of the tasks.
        level: two-sided level of the test.

    Returns:
        A number of tasks; None where the methods do not differ, rounding of means apart.
    """
    from statsmodels.stats.power import normal_sample_size_one_tail

    if abs(difference) <= _ROUNDING * math.sqrt(mean_square):
        return None
    spread = math.sqrt(max(0.0, mean_square - difference**2))
    needed = normal_sample_size_one_tail(abs(difference), POWER, level / 2, math.sqrt(mean_square), spread)
    return max(math.ceil(float(needed)), fewest_tasks(level))


def fewest_tasks(level: float = LEVEL) -> int:
    """Tasks below which no paired test can reject: the two patterns with all signs alike are too many of all."""
    return math.ceil(1 - math.log2(level))
