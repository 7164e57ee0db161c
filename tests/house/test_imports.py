"""The house: imports point only downwards, and nothing above the floor loads torch before it is used."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "burnish"
FLOORS = [
    ["data", "formats", "types", "errors", "lazy", "parts"],
    ["credit", "shape", "objectives", "divergences", "rewards", "keep", "measures"],
    ["tasks", "models"],
    ["rollouts", "feedback", "decoding", "memory"],
    ["methods"],
    ["training"],
    ["claims"],
    ["cli", "studio"],
]
HEIGHT = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}


def rooms_imported(path: Path) -> set[str]:
    """The rooms of the house that a file imports at any place, lazily or not."""
    found: set[str] = set()
    here = ("burnish", *path.relative_to(SOURCE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            whole = ".".join((*base, *(node.module or "").split("."))).strip(".")
            found |= {f"{whole}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("lazy", "map"):
            found |= {c.value for c in ast.walk(node) if isinstance(c, ast.Constant) and isinstance(c.value, str)}
    return {name.split(".")[1] for name in found if name.startswith("burnish.") and name.count(".")}


FILES = [p for p in sorted(SOURCE.rglob("*.py")) if p.parent != SOURCE or p.stem not in ("__init__", "__main__")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_only_downwards(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    above = {other for other in rooms_imported(path) & HEIGHT.keys() if HEIGHT[other] > HEIGHT[room]}
    assert not above, f"{room} must not import {above}"


def test_every_room_has_its_floor():
    assert {p.relative_to(SOURCE).parts[0].removesuffix(".py") for p in FILES} <= HEIGHT.keys()


def test_a_ground_floor_import_upwards_would_be_seen(tmp_path):
    file = SOURCE / "types" / "imagined.py"
    text = "from ..methods import base\n"
    assert rooms_imported_of(text, file) == {"methods"}


def rooms_imported_of(text: str, path: Path) -> set[str]:
    class Imagined(type(path)):
        def read_text(self, *_, **__):
            return text

    return rooms_imported(Imagined(path))


def test_catalogue_and_refusals_load_no_torch():
    program = """
import sys
from burnish.methods.registry import method, names
from burnish.training.request import resolve
from burnish.errors import Refused
for name in names():
    resolve(name, {"task": "mix"})
try:
    resolve("grpo", {"group_siz": 3, "credit": "ordinl", "temperature": 0})
except Refused as error:
    assert "3 problems" in str(error), error
else:
    raise SystemExit("not refused")
loaded = {"torch", "transformers", "numpy"} & set(sys.modules)
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_files_and_functions_stay_small():
    long = {}
    for path in FILES:
        text = path.read_text()
        if text.count("\n") > 400:
            long[str(path.relative_to(SOURCE))] = text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 60:
                long[f"{path.relative_to(SOURCE)}:{node.name}"] = (node.end_lineno or 0) - node.lineno
    assert not long
