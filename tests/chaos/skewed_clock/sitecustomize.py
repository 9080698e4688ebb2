"""On PYTHONPATH: ``time.time`` is off by the seconds in the file that ``SKEWED_BY`` names, as it is by then."""

import os
import time

_file = os.environ.get("SKEWED_BY", "")
_real = time.time


def _skewed() -> float:
    try:
        with open(_file, encoding="ascii") as file:  # noqa: PTH123 (pathlib would be imported too early)
            return _real() + float(file.read() or 0)
    except (OSError, ValueError):
        return _real()


if _file:
    time.time = _skewed
