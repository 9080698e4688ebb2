"""Nothing in the product runs what it was given as data: read off the source itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("conf", "envs", "orchestration", "selectors", "examples")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
FORBIDDEN_CALLS = {
    **dict.fromkeys(("eval", "exec", "compile", "__import__", "execfile"), "runs text as code"),
    **dict.fromkeys(("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"), "starts a shell"),
    **dict.fromkeys(("tempfile.mktemp",), "names a file that another process may make first"),
    **dict.fromkeys(("ssl._create_unverified_context",), "believes any certificate"),
    **dict.fromkeys(("extractall", "unpack_archive"), "lets an archive choose where its files go"),
}
FORBIDDEN_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle", "joblib"}
SAFE_YAML = {"SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader"}


@cache
def safe_loaders() -> set[str]:
    """PyYAML's, and classes of the product that are made of nothing else."""
    trees = (ast.parse(path.read_text("utf-8")) for path in FILES)
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.bases]
    bases = {one.name: {ast.unparse(base).rsplit(".", 1)[-1] for base in one.bases} for one in classes}
    safe, more = set(SAFE_YAML), set(SAFE_YAML)
    while more:
        more = {name for name, of in bases.items() if of <= safe and name not in safe}
        safe |= more
    return safe


def faults(source: str) -> list[str]:
    """What is wrong in a module, one entry for each place."""
    tree = ast.parse(source)
    return [f"line {getattr(node, 'lineno', 0)}: {fault}" for node in ast.walk(tree) for fault in _faults_of(node)]


def _faults_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (f"imports {name.name}" for name in node.names if name.name.split(".")[0] in FORBIDDEN_MODULES)
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if module.split(".")[0] in FORBIDDEN_MODULES:
            yield f"imports {module}"
        full = {f"{module}.{name.name}" for name in node.names}
        yield from (f"imports {name}: {FORBIDDEN_CALLS[name]}" for name in sorted(full & set(FORBIDDEN_CALLS)))
    elif isinstance(node, ast.Call):
        yield from _faults_of_call(ast.unparse(node.func), node)


def _faults_of_call(name: str, call: ast.Call) -> Iterator[str]:
    if name in FORBIDDEN_CALLS or name.rsplit(".", 1)[-1] in ("extractall", "unpack_archive"):
        yield f"{name}: {FORBIDDEN_CALLS.get(name) or FORBIDDEN_CALLS['extractall']}"
    options = {option.arg: option.value for option in call.keywords}
    value = {key: ast.unparse(given) for key, given in options.items() if key}
    if "shell" in value and value["shell"] != "False":
        yield f"{name}: shell={value['shell']}"
    if "trust_remote_code" in value and value["trust_remote_code"] != "False":
        yield f"{name}: trust_remote_code={value['trust_remote_code']}"
    if "verify" in value and value["verify"] == "False":
        yield f"{name}: verify=False"
    if "allow_pickle" in value and value["allow_pickle"] != "False":
        yield f"{name}: allow_pickle={value['allow_pickle']}"
    if name in ("np.load", "numpy.load") and value.get("allow_pickle") != "False":
        yield f"{name}: does not refuse pickles in so many words"
    if name.endswith("torch.load") and value.get("weights_only") != "True":
        yield f"{name}: without weights_only=True"
    if name in ("yaml.load", "yaml.load_all", "yaml.compose") and _loader(call, value) not in safe_loaders():
        yield f"{name}: may make objects"
    if name in ("yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all", "yaml.full_load_all"):
        yield f"{name}: makes objects"


def _loader(call: ast.Call, value: dict[str, str]) -> str:
    given = value.get("Loader") or (ast.unparse(call.args[1]) if len(call.args) > 1 else "")
    return given.rsplit(".", 1)[-1]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_runs_or_unpacks_what_it_was_given(folder: str) -> None:
    modules = [path for path in FILES if path.is_relative_to(ROOT / folder)]
    assert modules
    found = {str(path.relative_to(ROOT)): faults(path.read_text("utf-8")) for path in modules}
    assert {path: problems for path, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from cloudpickle import loads",
        "eval(text)",
        "exec(text)",
        "compile(text, 'x', 'exec')",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.load(text, yaml.FullLoader)",
        "yaml.unsafe_load(text)",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
        "AutoModel.from_pretrained(name, trust_remote_code=chosen)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "subprocess.run(words, shell=True)",
        "os.system(words)",
        "from os import system",
        "tempfile.mktemp()",
        "from tempfile import mktemp",
        "httpx.Client(verify=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "tar.extractall(folder)",
        "shutil.unpack_archive(path)",
    ],
)
def test_each_of_them_would_be_found(line: str) -> None:
    assert faults(line), line


@pytest.mark.parametrize(
    "line",
    [
        "re.compile(text)",
        "yaml.load(text, Loader=yaml.BaseLoader)",
        "yaml.safe_load(text)",
        "torch.load(path, weights_only=True)",
        "np.load(path, allow_pickle=False)",
        "subprocess.run([program])",
        "tempfile.mkstemp()",
        "model.eval()",
    ],
)
def test_what_is_harmless_is_let_be(line: str) -> None:
    assert faults(line) == []
