"""Parts are found by name, read without being run, and refused with the place and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from burnish.errors import BurnishError, Refused
from burnish.parts import At, Over, Part, TopK, credit, divergences, find, folder, function, objectives, over, read, use, user_path

MINE = '''
"""My parts."""
import torch

SCALE = 2.0

def mine(reward, group, *, power: float = 2.0, how: str = "abs", offset=None) -> "Rows":
    """A = R^power.

    More words."""
    return reward**power

def named(reward, mask, *, gamma: float = 1.0) -> dict(advantage="Steps", returns="Steps"):
    """Two columns."""
    return {"advantage": reward, "returns": reward}

def bare(logp, /, mask): return logp

def _private(x): return x

class Not: pass
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "my_file.py"
    path.write_text(MINE)
    return path


# Reading


def test_a_signature_says_columns_options_kinds_form_and_words(mine: Path) -> None:
    said = read(mine)["mine"]
    assert said.columns == ("reward", "group")
    assert said.options == {"power": 2.0, "how": "abs", "offset": None}
    assert said.kinds == {"power": "float", "how": "str", "offset": "Any"}
    assert said.returns == {"": "Rows"}
    assert said.summary == "A = R^power."
    assert said.source.startswith("def mine(")
    assert said.source.endswith("reward**power")


def test_named_columns_a_missing_annotation_and_positional_only_arguments_are_read(mine: Path) -> None:
    assert read(mine)["named"].returns == {"advantage": "Steps", "returns": "Steps"}
    bare = read(mine)["bare"]
    assert bare.columns == ("logp", "mask")
    assert bare.returns == {"": "Steps"}
    assert bare.doc == ""
    assert bare.options == {}


def test_only_public_functions_are_parts(mine: Path) -> None:
    assert set(read(mine)) == {"mine", "named", "bare"}


def test_reading_does_not_run_the_file(tmp_path: Path) -> None:
    path = tmp_path / "loud.py"
    path.write_text("raise SystemExit(1)\n\ndef quiet(logp) -> 'Steps': return logp\n")
    assert set(read(path)) == {"quiet"}


def test_gae_states_its_two_columns() -> None:
    said = credit.gae.signature
    assert said.columns == ("step_reward", "critic_value", "mask", "stop")
    assert said.returns == {"advantage": "Steps", "returns": "Steps"}
    assert said.options == {"gamma": 1.0, "lam": 0.95}


def test_helpers_beside_the_parts_are_no_parts() -> None:
    assert set(folder("credit")) >= {"centered", "normalized", "leave_one_out", "ordinal", "gae"}
    assert not set(folder("credit")) & {"group_index", "group_mean", "unanimous"}
    with pytest.raises(Refused, match="credit has no 'group_mean'"):
        find("credit", "group_mean")


# Finding


def test_a_part_is_found_by_its_plain_name_and_calls_its_function() -> None:
    part = find("credit", "centered")
    assert part == credit.centered
    assert part(torch.tensor([1.0, 3.0]), torch.tensor([5, 5])).tolist() == [-1, 1]


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused, match=r"credit has no 'ordnal'; did you mean 'ordinal'\?"):
        find("credit", "ordnal")
    with pytest.raises(Refused, match=r"objectives has no 'zzz'; known: .*cispo, clip"):
        _ = objectives.zzz


def test_a_part_of_another_folder_is_not_found() -> None:
    with pytest.raises(Refused, match="keep has no 'gae'"):
        find("keep", "gae")


def test_a_folder_has_no_dunder_parts() -> None:
    with pytest.raises(AttributeError):
        _ = credit.__wrapped__


# A user's own file


def test_a_users_part_is_found_by_path_and_name_and_called(mine: Path) -> None:
    part = find("credit", f"{mine}:mine")
    assert part(torch.tensor([3.0]), torch.tensor([0])).tolist() == [9]
    assert use(part, power=3.0)(torch.tensor([2.0]), None).tolist() == [8]
    assert str(use(part, power=3.0)) == f"{mine}:mine(power=3.0)"


def test_a_users_part_is_found_from_the_working_folder(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)
    assert find("credit", "my_file.py:mine").path == mine.resolve()


def test_only_a_python_file_with_a_name_is_a_users_part() -> None:
    assert user_path("ordinal") is None
    assert user_path("my_file.py") is None
    assert user_path("notes.txt:mine") is None
    assert user_path("a/b.py:c") == (Path("a/b.py").resolve(), "c")


def test_a_users_file_without_that_function_names_the_nearest_and_the_file(mine: Path) -> None:
    with pytest.raises(Refused, match=r"has no function 'mime'; did you mean 'mine'\?") as refused:
        find("credit", f"{mine}:mime")
    assert str(mine) in str(refused.value)


def test_a_missing_file_is_named_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"(?s)there is no such file.*my_file.py:my_function") as refused:
        find("credit", f"{tmp_path}/none.py:mine")
    assert f"{tmp_path}/none.py" in str(refused.value)


def test_a_syntax_error_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ndef mine(:\n")
    with pytest.raises(Refused, match="line 2") as refused:
        find("credit", f"{path}:mine")
    assert refused.value.where == str(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.py"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(Refused) as refused:
        find("credit", f"{path}:mine")
    assert refused.value.where == str(path)


def test_a_default_that_must_be_run_to_be_known_is_refused_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "clever.py"
    path.write_text("import math\n\ndef mine(logp, *, high: float = math.inf) -> 'Steps':\n    return logp\n")
    with pytest.raises(Refused, match=r"line 3: the default math.inf is no plain value") as refused:
        find("objective", f"{path}:mine")
    assert refused.value.where == str(path)


def test_an_import_that_raises_is_refused_with_the_error_and_the_file(tmp_path: Path) -> None:
    path = tmp_path / "raises.py"
    path.write_text("import no_such_module_at_all\n\ndef mine(logp) -> 'Steps': return logp\n")
    part = find("objective", f"{path}:mine")
    with pytest.raises(Refused, match=r"importing the file raised ModuleNotFoundError: .*no_such_module_at_all") as refused:
        part(torch.zeros(1, 1))
    assert refused.value.where == str(path)


def test_an_error_made_for_people_passes_an_import_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("from burnish.errors import DataError\nraise DataError('my words')\n\ndef mine(logp): return logp\n")
    with pytest.raises(BurnishError, match=r"^my words$"):
        function(path, "mine")


def test_two_users_files_of_one_name_do_not_mix(tmp_path: Path) -> None:
    parts = []
    for n in (1, 2):
        (tmp_path / str(n)).mkdir()
        path = tmp_path / str(n) / "same.py"
        path.write_text(f"def mine(reward) -> 'Rows': return reward * {n}\n")
        parts.append(find("credit", f"{path}:mine"))
    assert [float(p(torch.tensor(1.0))) for p in parts] == [1, 2]


def test_a_users_file_may_hold_dataclasses(tmp_path: Path) -> None:
    path = tmp_path / "data.py"
    path.write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n"
        "@dataclass\nclass Scale:\n    by: float = 3.0\n\n"
        "def mine(reward) -> Rows: return reward * Scale().by\n"
    )
    assert float(find("credit", f"{path}:mine")(torch.tensor(2.0))) == 6


# use, over


def test_use_sets_options_and_leaves_the_part_alone() -> None:
    part = use(credit.normalized, ddof=1)
    assert part.settings == {"eps": 1e-6, "ddof": 1}
    assert credit.normalized.options == {}
    reward, group = torch.tensor([0.0, 2.0]), torch.tensor([1, 1])
    assert part(reward, group)[1] == pytest.approx(1 / 2**0.5, abs=1e-5)
    assert part(reward, group, ddof=0)[1] == pytest.approx(1, abs=1e-5)


def test_use_refuses_an_unknown_option_with_the_nearest() -> None:
    with pytest.raises(Refused, match=r"clip has no option 'hihg'; did you mean 'high'\?"):
        use(objectives.clip, hihg=0.3)
    with pytest.raises(Refused, match="nll has no option 'low'; known: none"):
        use(objectives.nll, low=0.3)


def test_use_again_keeps_what_is_not_said() -> None:
    part = use(use(divergences.k3, weight=0.04))
    assert part.weight == 0.04
    clip = use(use(objectives.clip, low=0.1, weight=0.5), high=0.3)
    assert clip.options == {"low": 0.1, "high": 0.3}
    assert clip.weight == 0.5
    assert use(clip, weight=1.0).weight == 1.0


def test_a_part_reads_as_it_is_written() -> None:
    assert str(objectives.clip) == "clip"
    assert str(use(objectives.clip, low=0.1, weight=0.5)) == "clip(low=0.1, weight=0.5)"


def test_over_binds_a_divergence_to_the_other_side() -> None:
    wanted = over(divergences.jsd, to="teacher", name="gap", b=0.1)
    p, q = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    assert (wanted.name, wanted.to) == ("gap", "teacher")
    assert torch.equal(wanted(p, q), divergences.jsd(p, q, b=0.1))
    with pytest.raises(Refused, match="jsd has no option"):
        over(divergences.jsd, to="teacher", beta=0.1)


def test_over_nobody_is_a_function_of_one_distribution() -> None:
    assert Over("top", lambda p: p.amax(1))(torch.tensor([[0.1, 0.3]])).tolist() == pytest.approx([0.3])


def test_wants_are_equal_by_what_they_ask() -> None:
    assert TopK(5) == TopK(5) != TopK(6)
    assert At("ids") == At("ids") != At("others")
    assert isinstance(credit.ordinal, Part)
