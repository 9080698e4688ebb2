"""Generated and real ALFWorld games as they lie on disk."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Game:
    """A written game, read back."""

    path: Path
    content: dict[str, Any]
    trajectory: dict[str, Any]

    @property
    def goal(self) -> str:
        (sentence,) = re.findall(r'Your task is to: (.*?)\."', self.content["grammar"])
        return str(sentence)

    @property
    def pair(self) -> tuple[str, str]:
        wanted = self.trajectory["pddl_params"]
        return wanted["object_target"], wanted["parent_target"] or wanted["toggle_target"]


def read(path: Path) -> Game:
    trajectory = json.loads(path.with_name("traj_data.json").read_text(encoding="utf-8"))
    return Game(path, json.loads(path.read_text(encoding="utf-8")), trajectory)
