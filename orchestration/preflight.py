"""All cells of a sweep are checked before anything starts."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from skillarena.conf.errors import ConfigError, SkillArenaError
from skillarena.orchestration.cells import Cell, Preflight
from skillarena.orchestration.console import print_error
from skillarena.orchestration.settings import Settings

log = logging.getLogger(__name__)


def check_shared(all_settings: Sequence[Settings]) -> None:
    """What holds for a whole sweep must not differ between its cells. Raises ``ConfigError``."""
    for key in ("run", "cluster", "tracking", "output_dir", "cache_dir"):
        if any(getattr(settings, key) != getattr(all_settings[0], key) for settings in all_settings):
            raise ConfigError(f"{key} differs between the cells of one sweep", f"sweep other keys than `{key}`")
    if len(all_settings) > 1 and any(settings.cell_dir for settings in all_settings):
        raise ConfigError("cell_dir names one folder, but the sweep has several cells", "leave cell_dir out")


def preflight_all(all_settings: Sequence[Settings], preflight: Preflight) -> tuple[list[Cell], bool]:
    """Check every cell before anything starts; a sweep goes on without the broken ones if it may.

    Args:
        all_settings: as for ``run_cells``.
        preflight: checks one cell.

    Returns:
        The distinct cells, and whether others are broken; why is printed.

    Raises:
        SkillArenaError: no cell is left, or ``run.on_cell_error`` says stop.
    """
    cells: dict[str, Cell] = {}
    errors: dict[str, SkillArenaError] = {}
    for settings in all_settings:
        try:
            cell = preflight.cell(settings)
            cells.setdefault(cell.id, cell)
        except SkillArenaError as error:
            errors.setdefault(str(error), error)
    if errors and (not cells or all_settings[0].run.on_cell_error == "stop"):
        raise next(iter(errors.values()))
    for left_out in errors.values():
        print_error(left_out)
    merged = len(all_settings) - len(errors) - len(cells)
    if not errors and merged:
        log.warning("%d of %d cells are the same as others and run once", merged, len(all_settings))
    return list(cells.values()), bool(errors)
