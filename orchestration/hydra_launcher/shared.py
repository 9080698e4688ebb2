"""``hydra/launcher: shared``: every job of a multirun becomes a cell of one sweep.

Models, workers and selections are shared by all cells and no cell waits for another. The task function receives the
list of all configurations in one call. ``hydra/launcher=basic`` runs the cells in turn instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus, filter_overrides, setup_globals
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict

from hydra_plugins.skillarena_launcher.composing import compose_once


@dataclass
class SharedLauncherConf:
    """The launcher has no options: ``run`` and ``cluster`` hold for the whole sweep."""

    _target_: str = "hydra_plugins.skillarena_launcher.shared.SharedLauncher"


ConfigStore.instance().store(group="hydra/launcher", name="shared", node=SharedLauncherConf, provider="skillarena")


class SharedLauncher(Launcher):
    """Composes all jobs, then calls the task function once."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what ``launch`` needs."""
        self._context = hydra_context
        self._task_function = task_function
        self._config = config
        compose_once(hydra_context.config_loader)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Compose every job's configuration and play them together."""
        setup_globals()
        configs: list[Any] = []
        returns: list[JobReturn] = []
        for overrides in job_overrides:
            config = self._context.config_loader.load_sweep_config(self._config, list(overrides))
            with open_dict(config):
                del config["hydra"]
            configs.append(config)
            returns.append(JobReturn(overrides=list(filter_overrides(overrides)), cfg=config))
        self._task_function(configs)
        for job in returns:
            job.status, job.return_value = JobStatus.COMPLETED, None
        return returns
