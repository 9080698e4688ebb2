"""Hydra composes the cells of a command line; what is done with them is the command's own."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from skillarena.conf.errors import ConfigError, SkillArenaError, nearest
from skillarena.conf.redaction import refuse_credentials
from skillarena.orchestration.console import EXIT_INTERRUPTED, EXIT_OK, print_error

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from skillarena.orchestration.settings import Settings

_DEEPEST = 50  # brackets in an override
CONF_DIR = Path(__file__).resolve().parents[1] / "conf"


def main(arguments: Sequence[str], action: Callable[[Sequence[Settings]], int], command: str = "run") -> int:
    """Compose one cell, or with ``-m`` the cells of a sweep, and act on them.

    Args:
        arguments: Hydra's command line, without the program's name.
        action: takes the settings of all cells at once (with ``hydra/launcher=basic``: of one cell after the other) and
            returns an exit code.
        command: name of the command, for Hydra's messages.

    Returns:
        The exit code (see ``console.py``).

    Raises:
        ConfigError: an override holds a password, or a flag is not known.
    """
    from hydra import main as hydra_main
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    os.environ["HYDRA_FULL_ERROR"] = "1"  # makes Hydra raise, where it would print a part and exit with 1
    _register_launcher()
    codes = [EXIT_OK]
    _check_overrides(arguments)  # before Hydra prints or keeps any
    _check_flags(arguments, command)

    def act(configs: DictConfig | list[DictConfig]) -> None:
        """One configuration from Hydra's own launchers, all of a sweep at once from ours."""
        try:
            cells = configs if isinstance(configs, list) else [configs]
            codes.append(action([settings_from(config) for config in cells]))
            if codes[-1] == EXIT_INTERRUPTED:
                raise SystemExit(EXIT_INTERRUPTED)  # also ends a sweep whose cells run in turn
        except SkillArenaError as error:
            codes.append(print_error(error))

    sys.argv = [f"skillarena {command}", *_options_of_swept_choices(arguments)]
    with TemporaryDirectory(prefix="skillarena-") as scratch:  # Hydra's sweeper insists on writing a file
        os.environ["SKILLARENA_SWEEP_DIR"] = scratch
        try:
            hydra_main(version_base="1.3", config_path=str(CONF_DIR), config_name="config")(act)()
        except (HydraException, OmegaConfBaseException) as error:
            codes.append(print_error(explained(error, arguments)))
        except (ValueError, RecursionError, OSError) as error:
            codes.append(print_error(_unreadable(error)))
    return max(codes)


def _check_overrides(arguments: Sequence[str]) -> None:
    """Raises ``ConfigError`` for a URL with a password in it, and for brackets so deep that Hydra takes seconds."""
    for argument in arguments:
        steps = (1 if char in "[{(" else -1 if char in "]})" else 0 for char in argument)
        if max(accumulate(steps), default=0) > _DEEPEST:
            raise ConfigError(
                f"{argument[:40]}…: its brackets are more than {_DEEPEST} deep", "write KEY=VALUE; quote text: KEY='…'"
            )
        name, _, value = argument.partition("=")
        refuse_credentials(value or name, name.lstrip("+~") if value else "the command line")


def _check_flags(arguments: Sequence[str], command: str) -> None:
    """Raises ``ConfigError`` for a flag that Hydra does not know, on which it would print a page of usage."""
    from hydra._internal.utils import get_args_parser

    flags = [flag for action in get_args_parser()._actions for flag in action.option_strings]
    own = [] if command == "run" else ["--json"]  # taken by the command itself
    for argument in arguments:
        flag = argument.partition("=")[0]
        if re.match(r"--?[a-zA-Z]", flag) and not any(known.startswith(flag) for known in flags):
            raise ConfigError(
                f"{flag}: no such flag{nearest(flag, [*own, *flags])}", f"`skillarena {command} --help` lists its flags"
            )


def _options_of_swept_choices(arguments: Sequence[str]) -> list[str]:
    """Let options of a swept choice join the sweep, as in ``-m selector=a,b selector.option=3``.

    Hydra applies what is not swept to the default choice first, which may not know the option.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    if not {"-m", "--multirun"} & set(arguments):
        return list(arguments)
    parser, known = OverridesParser.create(), {}
    for argument in arguments:
        try:
            known[argument] = parser.parse_override(argument)
        except HydraException:  # a flag, or a mistake that Hydra will report
            continue
    swept = [override.key_or_group for override in known.values() if override.is_sweep_override()]
    joined = []
    for argument in arguments:
        override = known.get(argument)
        of_swept = override is not None and override.key_or_group.startswith(tuple(f"{group}." for group in swept))
        if of_swept and override is not None and not override.is_sweep_override() and not override.is_delete():
            name, _, value = argument.partition("=")
            argument = f"{name}=choice({value})"
        joined.append(argument)
    return joined


def compose(overrides: Sequence[str], config_dir: Path | None = None) -> Settings:
    """The settings that ``skillarena run`` with these overrides would use.

    Args:
        overrides: as on the command line.
        config_dir: folder of further configuration files, as ``--config-dir``.

    Raises:
        ConfigError: typed mistakes, each with the fix.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    _register_launcher()
    _check_overrides(overrides)
    try:
        with initialize_config_dir(str(CONF_DIR), version_base="1.3", job_name="skillarena"):
            more = [f"hydra.searchpath=[file://{config_dir.absolute()}]"] if config_dir else []
            return settings_from(hydra_compose("config", overrides=[*more, *overrides]))
    except (HydraException, OmegaConfBaseException) as error:
        searched = [] if config_dir is None else ["--config-dir", str(config_dir)]
        raise explained(error, [*searched, *overrides]) from error
    except (ValueError, RecursionError, OSError) as error:
        raise _unreadable(error) from error


def settings_from(config: DictConfig) -> Settings:
    """Resolve and check a composed configuration. Raises ``ConfigError``."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from skillarena.orchestration.settings import validate

    try:
        raw = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise explained(error) from error
    if not isinstance(raw, dict):
        raise ConfigError("the configuration is a list, not a tree of keys", "check --config-name")
    return validate({str(key): value for key, value in raw.items() if key not in ("hydra", "experiment")})


def explained(error: Exception, arguments: Sequence[str] = ()) -> ConfigError:
    """One message with the nearest valid word, from the several lines Hydra and OmegaConf use.

    Args:
        error: what Hydra or OmegaConf raised.
        arguments: the command line, which says among the keys of which choice to look for the nearest.
    """
    texts = [str(cause) for cause in _causes(error) if str(cause)]
    text = "\n".join(texts)
    unknown = re.search(r"Key '([^']+)' is not in struct\s+full_key: (\S+)", text)
    if unknown:
        return _unknown_key(unknown.group(2), arguments)
    of_list = re.search(r"Could not load '([^'/]+)/([^']+)'\.", text)
    if of_list:
        folders = re.findall(r"path=file://(.*)", text)
        options = sorted({path.stem for folder in folders for path in Path(folder).glob(f"{of_list[1]}/*.yaml")})
        return _unknown_choice(of_list[1], of_list[2], options, arguments)
    choice = re.search(r"Could not find '([^'/]+)/([^']+)'\s+Available options in '[^']+':\s+(.*)", text, re.DOTALL)
    if choice:
        options = choice.group(3).split("\nConfig search path")[0].split()
        return _unknown_choice(choice.group(1), choice.group(2), options, arguments)
    group = re.search(r"Could not override '([^']+)'\.\s+No match in the defaults list", text)
    if group:
        return _unknown_key(group.group(1), arguments)
    missing = re.search(r"Missing mandatory value: \S+\s+full_key: (\S+)", text)
    if missing:
        return ConfigError(f"{missing.group(1)} has no value", f"add {missing.group(1)}=VALUE")
    override = getattr(error, "override", None)
    if override:
        return ConfigError(f"cannot read the override {override!r}", "write KEY=VALUE; quote lists: 'KEY=[a,b]'")
    first = re.sub(r"\s*\n\s*", "; ", texts[0])[:300] if texts else type(error).__name__
    return ConfigError(first, "see `skillarena run --help` for keys and `skillarena run --hydra-help` for the syntax")


def _unreadable(error: Exception) -> ConfigError:
    """What Hydra lets through: flags that do not go together, choices that are no name, absurd lengths and depths.

    Other failures of the system are raised as they are.
    """
    if isinstance(error, OSError) and error.errno != errno.ENAMETOOLONG:
        raise error
    fix = "write KEY=VALUE and GROUP=CHOICE; see `skillarena run --help`"
    return ConfigError(f"cannot read the overrides: {str(error)[:300]}", fix)


def _unknown_choice(group: str, word: str, options: list[str], arguments: Sequence[str]) -> ConfigError:
    searched = any(argument.startswith(("--config-dir", "-cd", "hydra.searchpath")) for argument in arguments)
    near = nearest(word, options)
    own = (
        ""
        if near or searched
        else f"; files of your own are found with --config-dir FOLDER, as FOLDER/{group}/{word}.yaml"
    )
    return ConfigError(f"{group}={word}: no such choice{near}", f"choose from {', '.join(options)}{own}")


def _unknown_key(path: str, arguments: Sequence[str]) -> ConfigError:
    parent, _, word = path.rpartition(".")
    siblings = _keys_under(parent, arguments)
    if word in siblings:
        group = parent.split(".")[0]
        return ConfigError(f"{path}: the chosen {group} has no such key", f"leave it out, or choose another {group}")
    where = f"under `{parent}`" if parent else "at the top"
    known = f"keys {where}: {', '.join(siblings)}" if siblings else "`skillarena run --cfg job` shows all keys"
    return ConfigError(f"{path}: unknown key{nearest(word, siblings)}", known)


def _keys_under(parent: str, arguments: Sequence[str]) -> list[str]:
    """Keys below a dotted path, for suggestions: those of the group's choice on the command line, else its default."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import DictConfig, OmegaConf

    folders = [Path(after).absolute() for flag, after in pairwise(arguments) if flag in ("--config-dir", "-cd")]
    choices = re.findall(rf"^{re.escape(parent.split('.')[0])}=(\w+)", "\n".join(arguments), re.MULTILINE)
    chosen = [f"{parent.split('.')[0]}={choice}" for choice in choices[-1:]]
    searched = [f"hydra.searchpath=[file://{folder}]" for folder in folders[-1:]]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF_DIR), version_base="1.3", job_name="skillarena"):
        try:
            config = hydra_compose("config", overrides=[*searched, *chosen])
        except HydraException:  # the choice is the other mistake
            config = hydra_compose("config")
    node = OmegaConf.select(config, parent) if parent else config
    return [str(key) for key in node] if isinstance(node, DictConfig) else []


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        chain.append(cause)
        cause = cause.__cause__
    return chain


def _register_launcher() -> None:
    """Hydra scans installed ``hydra_plugins``; an editable install is not found that way, so say it."""
    from hydra.core.plugins import Plugins

    from hydra_plugins.skillarena_launcher.shared import SharedLauncher

    Plugins.instance().register(SharedLauncher)
