"""The house stands as planned: who imports whom, what is in the wheel, and what the papers on the door say."""

import ast
import doctest
import importlib
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest

import isoform

ROOT = Path(__file__).parent.parent
FLOORS = {"api": "isoform", "derivations": "isoform.derivations", "impl": "isoform.impl", "properties": "isoform.properties"}
MAX_LINES = 600
BANNED = {
    "derivations": ("torch", "hypothesis", "isoform.impl", "isoform.properties"),
    "impl": ("sympy", "flint", "hypothesis", "isoform.derivations", "isoform.properties"),
    "properties": ("isoform.impl",),
}


def sources(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def module_name(path):
    floor, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((FLOORS[floor], *(part for part in rest if part != "__init__")))


def imports(name, is_package, text):
    """Return every module that a source text imports, as an absolute name; `from a import b` counts as a and a.b."""
    found = set()
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join((*above, base)) if base else ".".join(above)
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def imports_of(path):
    return imports(module_name(path), path.name == "__init__.py", path.read_text(encoding="utf-8"))


def breaches(found, banned):
    return sorted(name for name in found for ban in banned if name == ban or name.startswith(ban + "."))


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("import torch.nn as nn", "torch"),
        ("def f():\n    from sympy import Symbol", "sympy"),
        ("from ..derivations import claim", "isoform.derivations"),
        ("from .. import derivations", "isoform.derivations"),
        ("from isoform import derivations", "isoform.derivations"),
        ("from .kernel.terms import Term", "isoform.impl.kernel"),
    ],
)
def test_a_banned_import_is_seen(text, banned):
    assert breaches(imports("isoform.impl.delta_rule", False, text), (banned,))


def test_a_permitted_import_is_not():
    assert not breaches(imports("isoform.impl.delta_rule", False, "import torchlike, math\nfrom . import rope"), ("torch", "sympy"))


@pytest.mark.parametrize("floor", BANNED)
def test_no_floor_imports_what_it_must_not(floor):
    assert {str(path): bad for path in sources(floor) if (bad := breaches(imports_of(path), BANNED[floor]))} == {}


def test_the_second_engine_shares_the_language_and_nothing_else():
    kernel = "isoform.derivations.kernel"
    language = (f"{kernel}.terms", f"{kernel}.formulas")
    used = {path: breaches(imports_of(path), (kernel,)) for path in sources("derivations/evaluate")}
    foreign = {str(path): [name for name in names if name != kernel and not breaches({name}, language)] for path, names in used.items()}
    assert used
    assert {path: names for path, names in foreign.items() if names} == {}


@pytest.mark.parametrize("floor", FLOORS)
def test_files_can_be_read_in_one_sitting(floor):
    lengths = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources(floor)}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}


def test_code_has_the_name_of_its_derivation():
    from isoform.derivations.registry import architectures

    names = {path.stem for path in (ROOT / "impl").iterdir() if not path.name.startswith(("_", "."))}
    assert names
    assert {name.replace("_", "-") for name in names} <= {name.replace("_", "-") for name in architectures()}


def in_fresh_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("code", ["import isoform", "import isoform.cli", "import isoform; isoform.claims(); isoform.__version__"])
def test_the_face_is_light(code):
    heavy = "[name for name in ('torch', 'sympy', 'numpy', 'scipy', 'hypothesis', 'flint') if name in sys.modules]"
    assert in_fresh_python(f"import sys; {code}; print({heavy})") == "[]"


def test_the_list_is_light():
    run = "import sys; from isoform.cli import main; code = main(['list', '--json'])"
    code = f"{run}; print(code, 'sympy' in sys.modules, 'torch' in sys.modules)"
    assert in_fresh_python(code).splitlines()[-1] == "0 False False"


@pytest.mark.parametrize("name", isoform.__all__)
def test_every_public_name_is_there(name):
    assert getattr(isoform, name) is not None


@pytest.mark.parametrize("name", [name for name in isoform.__all__ if not name.startswith("__")])
def test_no_module_replaces_a_public_name(name):
    assert not (ROOT / "api" / f"{name}.py").exists() and not (ROOT / "api" / name).exists()


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        isoform.nonsense  # noqa: B018


def modules():
    for name in FLOORS.values():
        package = importlib.import_module(name)
        yield name
        for info in pkgutil.walk_packages(package.__path__, name + "."):
            if not info.name.endswith("__main__"):
                yield info.name


def test_doctests():
    results = {name: doctest.testmod(importlib.import_module(name)) for name in dict.fromkeys(modules())}
    assert {name: result for name, result in results.items() if result.failed} == {}
    assert sum(result.attempted for result in results.values()) > 0


def files_of_git():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so there is no list of files to compare with")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).exists()]


def test_the_wheel_has_every_file_of_the_floors(tmp_path):
    listed = files_of_git()
    for name in listed:
        target = tmp_path / "tree" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(tmp_path / "tree")]
    subprocess.run([sys.executable, *build], check=True)
    (wheel,) = tmp_path.glob("isoform-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith(".dist-info/licenses/CITATION.cff") for name in names)
    assert packed == {in_wheel(name) for name in listed if PurePosixPath(name).parts[0] in FLOORS}


def in_wheel(name):
    floor, *rest = PurePosixPath(name).parts
    return "/".join((FLOORS[floor].replace(".", "/"), *rest))


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    released = re.search(r"^## (\S+) \((\S+)\)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert released is not None
    assert isoform.__version__ == version == released[1]
    assert f"\nversion: {version}\n" in text_of("CITATION.cff")
    assert f"\ndate-released: {released[2]}\n" in text_of("CITATION.cff")


def test_every_dependency_is_pinned_in_the_constraints():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    needed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.match(r"[\w-]+", line)[0] for line in needed} - {"isoform"}
    lines = [line for file in ("constraints.txt", "benchmarks/peers.txt") for line in text_of(file).splitlines()]
    pins = [pin[1] for line in lines if (pin := re.fullmatch(r"([\w.-]+)==[\w.]+", line))]
    assert {name.lower() for name in names} <= {name.lower() for name in pins}
    assert len(pins) == len([line for line in lines if line and not line.startswith("#")])


def test_the_readme_names_commands_that_exist():
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    named = re.findall(r"\bmake ([a-z]+)\b", text_of("README.md"))
    assert named[:2] == ["verify", "test"]
    assert set(named) <= targets


def test_the_readme_names_subcommands_and_claims_that_exist():
    from isoform.cli import COMMANDS

    fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text_of("README.md"), re.MULTILINE | re.DOTALL))
    calls = re.findall(r"^(?:\$ )?isoform ([a-z]+)(?: ([a-z-]+/[a-z-]+))?", fenced, re.MULTILINE)
    assert calls
    assert {command for command, _ in calls} <= set(COMMANDS)
    assert {id for _, id in calls if id} <= {entry.id for entry in isoform.claims()}
