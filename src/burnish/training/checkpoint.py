"""Checkpoints: tensors in safetensors, the rest in JSON, each with its digest.

Written aside, flushed to disk, renamed; only then the old one goes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from ..errors import CheckpointError, RunError

SEPARATOR = "::"


def write(folder: Path, name: str, state: dict[str, Any], keep: int) -> Path:
    """Save a nested state as folder/name and delete all but the newest `keep`. Raises RunError; what was there before stays usable."""
    target, aside = folder / name, folder / f".{name}.writing"
    tensors: dict[str, torch.Tensor] = {}
    plain = _split(state, "", tensors)
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        blobs = {"tensors.safetensors": save(tensors), "state.json": json.dumps(plain).encode()}
        blobs["digests.json"] = json.dumps({n: hashlib.sha256(b).hexdigest() for n, b in blobs.items()}).encode()
        for file, blob in blobs.items():
            _write_flushed(aside / file, blob)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(aside, target)
        _flush_folder(folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        last = newest(folder)
        saved = f"the last good checkpoint is {last}" if last else "there is no earlier checkpoint"
        raise RunError(
            f"the checkpoint could not be written: {error.strerror}", where=str(target), fix=f"free space or rights there; {saved}"
        ) from error
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def _write_flushed(path: Path, blob: bytes) -> None:
    with path.open("wb") as file:
        file.write(blob)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _split(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    """The plain skeleton of a nested state; tensors move out and leave their path."""
    if isinstance(value, torch.Tensor):
        tensors[path] = value.detach().contiguous().clone()
        return {"tensor": path}
    if isinstance(value, dict):
        return {"dict": {k: _split(v, f"{path}{SEPARATOR}{k}", tensors) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_split(v, f"{path}{SEPARATOR}{i}", tensors) for i, v in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise CheckpointError(f"{path} is a {type(value).__name__}: no memory may hold that", expected="tensors, numbers, texts, lists, dicts")


def _join(node: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Any:
    ((kind, x),) = node.items()
    if kind == "tensor":
        return tensors[x]
    if kind == "dict":
        return {k: _join(v, tensors) for k, v in x.items()}
    if kind in ("list", "tuple"):
        made = [_join(v, tensors) for v in x]
        return tuple(made) if kind == "tuple" else made
    return x


def checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first."""
    return sorted(p for p in folder.glob("step-*") if p.is_dir())


def newest(folder: Path) -> Path | None:
    """The newest finished checkpoint."""
    found = checkpoints(folder)
    return found[-1] if found else None


def read(path: Path) -> dict[str, Any]:
    """The state that was written. Raises CheckpointError naming file and remedy when anything in it is missing or changed."""
    others = [p for p in checkpoints(path.parent) if p != path]
    fix = f"go on from an earlier one: burnish resume {path.parent.parent} --at {others[-1].name}" if others else "start the run again"
    try:
        digests = json.loads((path / "digests.json").read_text())
        blobs = {n: (path / n).read_bytes() for n in digests}
        for file, blob in blobs.items():
            if hashlib.sha256(blob).hexdigest() != digests[file]:
                raise CheckpointError("the checkpoint is damaged: its content does not match its digest", where=str(path / file), fix=fix)
        tensors = load(blobs["tensors.safetensors"])
        state: dict[str, Any] = _join(json.loads(blobs["state.json"]), tensors)
        return state
    except (OSError, ValueError, KeyError, AttributeError, TypeError, SafetensorError) as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}", where=str(path), fix=fix) from error
