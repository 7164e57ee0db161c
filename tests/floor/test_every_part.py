"""What every part of every folder must keep; a new part is covered the day it is written."""

from __future__ import annotations

import ast
import typing

import pytest
import torch
from torch import Tensor

from burnish.errors import TableError
from burnish.parts import SLOTS, Part, find, folder, function

FORMS = {"Steps", "Rows", "Pairs", "Groups"}
EVERY = [pytest.param(find(kind, name), id=f"{kind}.{name}") for kind in sorted(set(SLOTS.values())) for name in folder(kind)]
OF_COLUMNS = [p for p in EVERY if p.values[0].name != "samples"]  # which reads a whole table
MASKED = [p for p in OF_COLUMNS if "mask" in p.values[0].signature.columns]
B, T, P, V = 4, 3, 2, 5

# What each column looks like. A part with a column of another name adds it here.
SHAPES = {
    "B": "reward greedy_reward kl_weight weight",
    "BT": "advantage step_reward returns logp behaviour_logp sampled_logp old_logp reference_logp teacher_logp divergence entropy "
    "old_entropy old_divergence",
    "BS": "value critic_value",
    "NV": "p q",
}
SIZE = {"B": (B,), "BT": (B, T), "BS": (B, T + 1), "NV": (B * T, V)}


def column(name: str) -> Tensor:
    if name == "mask":
        return torch.arange(T) < torch.tensor([3, 2, 1, 3])[:, None]
    if name == "group":
        return torch.tensor([1, 1, 2, 2])
    if name == "stop":
        return torch.tensor([0, 1, 2, 0])
    if name == "length":
        return torch.tensor([3, 2, 1, 3])
    shape = next((SIZE[form] for form, names in SHAPES.items() if name in names.split()), None)
    assert shape, f"say in SHAPES what the column {name!r} looks like"
    x = torch.sin(torch.arange(1.0, 1 + len(name) + torch.Size(shape).numel())[len(name) :]).reshape(shape)
    return x.log_softmax(-1) if name in ("p", "q") else -x.abs() if name.endswith("logp") else x.abs() if "entropy" in name else x


@pytest.mark.parametrize("part", EVERY)
def test_it_begins_with_a_formula_or_a_sentence(part: Part) -> None:
    assert len(part.signature.summary) > 2
    assert part.signature.summary.rstrip()[-1] in ".;,:"
    assert not part.signature.summary.lower().startswith(("todo", part.name + "("))


@pytest.mark.parametrize("part", EVERY)
def test_it_states_what_a_value_belongs_to(part: Part) -> None:
    returns = part.signature.returns
    if "" in returns:
        assert returns[""] in FORMS or returns[""].startswith("dict[")
    else:
        assert returns
        assert set(returns.values()) <= FORMS


@pytest.mark.parametrize("part", EVERY)
def test_its_options_have_kinds_and_plain_defaults_of_that_kind(part: Part) -> None:
    node = ast.parse(part.signature.source).body[0]
    assert isinstance(node, ast.FunctionDef)
    assert all(d is not None for d in node.args.kw_defaults), "an option without a default"
    for name, default in part.signature.options.items():
        kind = part.signature.kinds[name]
        if kind.startswith("Literal["):
            assert default in ast.literal_eval(kind.removeprefix("Literal").replace("[", "(", 1)[:-1] + ",)")
        else:
            known = {"float": float, "int": int, "bool": bool, "str": str, "Positive": int, "Count": int, "Share": float, "Size": float}
            assert kind in known, f"{name}: {kind}"
            assert type(default) is known[kind]


@pytest.mark.parametrize(
    ("kind", "name", "settings"),
    [
        ("objectives", "clip", {"low": 0.2, "high": 0.2, "dual": 0.0, "ratio": "token"}),
        ("objectives", "value_squared", {"clip": 0.2}),
        ("credit", "gae", {"gamma": 1.0, "lam": 0.95}),
        ("credit", "normalized", {"eps": 1e-6, "ddof": 0}),
        ("rewards", "overlong", {"limit": 20480, "buffer": 4096}),
        ("rewards", "minus_kl", {"beta": 0.05}),
        ("shape", "share_by_divergence", {"tau": 0.5, "kappa": 1.0}),
        ("divergences", "jsd", {"b": 0.5}),
    ],
)
def test_a_name_alone_gives_the_settings_of_its_paper(kind: str, name: str, settings: dict[str, object]) -> None:
    assert find(kind, name).settings == settings


@pytest.mark.parametrize("part", EVERY)
def test_its_columns_are_annotated_and_none_has_a_default(part: Part) -> None:
    made = function(part.path, part.name)
    hints = typing.get_type_hints(made) if "dict(" not in part.signature.source.split('"""')[0] else made.__annotations__
    assert set(part.signature.columns) <= set(hints)
    assert made.__defaults__ is None
    assert part.signature.columns


@pytest.mark.parametrize("part", OF_COLUMNS)
def test_what_it_returns_has_the_form_it_states(part: Part) -> None:
    values = {name: column(name) for name in part.signature.columns}
    kept = {name: x.clone() for name, x in values.items()}
    made = part(*values.values())
    returns = part.signature.returns
    assert all(torch.equal(values[name], kept[name]) for name in values), "a part changed what it was given"
    if "" not in returns:
        assert set(made) == set(returns)
        assert all(made[name].shape == ((B, T) if form == "Steps" else (B,)) for name, form in returns.items())
    elif returns[""].startswith("dict"):
        assert made
        assert all(type(x) is float for x in made.values())
    else:
        rows = {"NV": B * T}.get("NV" if "p" in values else "", B)
        assert made.shape == ((B, T) if returns[""] == "Steps" else (rows,))
        assert made.dtype == torch.bool or made.isfinite().all()


@pytest.mark.parametrize("part", OF_COLUMNS)
def test_a_column_with_an_axis_too_many_is_refused(part: Part) -> None:
    names = part.signature.columns
    for wrong in names:
        with pytest.raises(TableError):
            part(*(column(n)[..., None] if n == wrong else column(n) for n in names))


@pytest.mark.parametrize("part", OF_COLUMNS)
def test_a_column_of_other_rows_is_refused(part: Part) -> None:
    names = part.signature.columns
    for wrong in names if len(names) > 1 else []:
        with pytest.raises(TableError):
            part(*(torch.cat([column(n), column(n)[:1]]) if n == wrong else column(n) for n in names))


@pytest.mark.parametrize("part", OF_COLUMNS)
def test_a_single_row_is_not_spread_over_the_table(part: Part) -> None:
    names = part.signature.columns
    for wrong in names if len(names) > 1 else []:
        with pytest.raises(TableError):
            part(*(column(n)[:1] if n == wrong else column(n) for n in names))


@pytest.mark.parametrize("part", OF_COLUMNS)
def test_a_column_of_other_steps_is_refused(part: Part) -> None:
    names = part.signature.columns
    wide = [n for n in names if column(n).ndim > 1]
    for wrong in wide if len(wide) > 1 else []:
        with pytest.raises(TableError):
            part(*(column(n)[:, :-1] if n == wrong else column(n) for n in names))


@pytest.mark.parametrize("part", OF_COLUMNS)
def test_rows_do_not_depend_on_the_order_of_the_table(part: Part) -> None:
    """A permutation of the rows permutes the result: no part may look at a row's place."""
    names, order = part.signature.columns, torch.tensor([2, 0, 3, 1])
    if "p" in names:
        order = torch.arange(B * T).flip(0)
    made, moved = (part(*(column(n)[o] for n in names)) for o in (slice(None), order))
    if "" in part.signature.returns and isinstance(made, Tensor):
        assert torch.allclose(made[order].double(), moved.double(), atol=1e-6)
    else:
        for name, x in made.items():
            y = x[order] if isinstance(x, Tensor) else torch.tensor(x)
            assert torch.allclose(y, torch.as_tensor(moved[name]), atol=1e-6)


@pytest.mark.parametrize("part", MASKED)
def test_a_table_of_no_steps_is_no_accident(part: Part) -> None:
    names = part.signature.columns
    made = part(*(column(n) if column(n).ndim == 1 else column(n)[:, : column(n).shape[1] - T] for n in names))
    for x in made.values() if isinstance(made, dict) else [made]:
        assert torch.as_tensor(x).isfinite().all()


@pytest.mark.parametrize("part", MASKED)
def test_an_empty_mask_gives_no_nan(part: Part) -> None:
    names = part.signature.columns
    made = part(*(torch.zeros(B, T, dtype=torch.bool) if n == "mask" else column(n) for n in names))
    for x in made.values() if isinstance(made, dict) else [made]:
        assert torch.as_tensor(x).isfinite().all()


@pytest.mark.parametrize("part", [p for p in MASKED if "logp" not in p.values[0].signature.columns or "measures" in p.id])
@pytest.mark.parametrize("poison", [float("nan"), float("-inf"), float("inf")])
def test_what_lies_outside_the_mask_does_not_enter(part: Part, poison: float) -> None:
    """Bit-equal to zeros there, for every part that reads a mask and whose result is no loss (those have their gradients tested)."""
    names, mask = part.signature.columns, column("mask")

    def filled(name: str, value: float) -> Tensor:
        x = column(name)
        if name == "mask" or x.ndim == 1:
            return x
        inside = torch.cat([torch.ones(B, x.shape[1] - T, dtype=torch.bool), mask], 1)  # the state after the last step is inside
        return torch.where(inside, x, value)

    clean, dirty = (part(*(filled(n, value) for n in names)) for value in (0.0, poison))
    for x, y in zip(*(m.values() if isinstance(m, dict) else [m] for m in (clean, dirty)), strict=True):
        x, y = (torch.as_tensor(z)[mask] if torch.as_tensor(z).ndim == 2 else torch.as_tensor(z) for z in (x, y))
        assert torch.equal(x, y)
