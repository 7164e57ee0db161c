"""list and show: what there is, for people and for scripts."""

import json

import pytest

from burnish.methods.registry import names
from burnish.parts import SLOTS

KEYS = ["name", "kind", "family", "parent", "paper", "needs", "roles", "options", "parts", "doc", "claim"]


def test_the_list_has_every_method_with_its_first_sentence(burnish):
    done = burnish("list")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines() if line[0] != " "] == ["name", *names()]
    assert "the other answers to a context" in done.out


def test_the_list_for_scripts_has_stable_keys(burnish):
    found = json.loads(burnish("list", "--json").out)
    assert [m["name"] for m in found] == list(names())
    for one in found:
        assert list(one) == KEYS
        assert all(list(o) == ["name", "type", "default", "help", "group"] for o in one["options"])
        assert one["needs"]
        assert one["kind"] in ("method", "decoding")
        assert json.loads(burnish("show", one["name"], "--json").out) == one


def test_show_and_list_know_parents_roles_and_parts(burnish):
    found = {m["name"]: m for m in json.loads(burnish("list", "--json").out)}
    assert found["dapo"]["parent"] == "grpo"
    assert found["grpo"]["parent"] is None
    assert found["grpo"]["roles"] == {"reference": "frozen"}
    assert found["cispo"]["roles"] == {}
    assert found["ppo"]["roles"] == {"reference": "frozen", "critic": "copy"}
    assert found["ppo"]["parts"]["critic_objective"] == ["value_squared"]
    assert "critic_objective" not in found["grpo"]["parts"]
    assert found["sft"]["needs"] == ["demonstration"]
    options = {o["name"]: o for o in found["ppo"]["options"]}
    assert options["kl_weight.target"] == {**options["kl_weight.target"], "type": "float", "default": 6.0, "group": "memory"}
    assert options["credit.gamma"]["default"] == 1.0
    assert options["prompts"]["default"] == 16
    assert options["critic"]["group"] == "role"


@pytest.mark.parametrize(
    ("words", "there", "not_there"),
    [
        (["--family", "supervised"], "sft", "grpo"),
        (["--feedback", "demonstration"], "sft", "grpo"),
        (["--feedback", "reward"], "grpo", "sft"),
        (["--kind", "decoding"], "best-of-n", "grpo"),
    ],
)
def test_the_list_can_be_narrowed(burnish, words, there, not_there):
    found = [m["name"] for m in json.loads(burnish("list", "--json", *words).out)]
    assert there in found
    assert not_there not in found


def test_the_list_of_parts_has_every_slot(burnish):
    done = burnish("list", "--parts")
    for slot in SLOTS:
        assert f"--{slot.replace('_', '-')}\n" in done.out
    assert "ordinal" in done.out
    penalties = [p["name"] for p in json.loads(burnish("list", "--parts", "--json").out) if p["family"] == "penalty"]
    assert "k3" in penalties
    assert "hellinger" not in penalties


@pytest.mark.parametrize("name", names())
def test_show_prints_the_class_and_the_bodies_of_its_parts_in_call_order(burnish, name):
    done = burnish("show", name)
    assert done.code == 0
    said = json.loads(burnish("show", name, "--json").out)
    assert said["doc"].splitlines()[0] in done.out
    source = burnish("show", name, "--source").out
    assert source.startswith("class ")
    assert done.out.endswith(source)
    order = ("keep", "reward", "credit", "shape", "objective", "penalty", "critic_objective")
    places = [source.index(f"def {part}(") for slot in order for part in said["parts"].get(slot, ())]
    assert places == sorted(places)


def test_show_of_a_part_is_the_part(burnish):
    done = burnish("show", "ordinal")
    assert "--credit" in done.out
    assert "def ordinal(reward: Tensor, group: Tensor) -> Rows:" in done.out
    said = json.loads(burnish("show", "normalized", "--json", "--source").out)
    assert list(said) == [*KEYS, "source"]
    assert said["kind"] == "part"
    assert said["needs"] == ["reward", "group"]
    assert [o["name"] for o in said["options"]] == ["eps", "ddof"]
    assert said["source"].startswith("def normalized(")


def test_a_method_and_a_part_of_ones_own_are_shown_and_planned(burnish, tmp_path):
    (tmp_path / "own.py").write_text(
        '''from burnish.methods.policy_gradient.grpo import GRPO
from burnish.parts import credit


class Mine(GRPO):
    """Mine: only the order counts."""

    credit = credit.ordinal
    patience: int = 3  # how long


def half(reward, *, by: float = 0.5) -> "Rows":
    """A = R times by."""
    return reward * by
'''
    )
    said = json.loads(burnish("show", "own.py:Mine", "--json").out)
    assert (said["name"], said["parent"], said["paper"], said["family"]) == ("Mine", "grpo", "", "own")
    patience = next(o for o in said["options"] if o["name"] == "patience")
    assert patience == {"name": "patience", "type": "int", "default": 3, "help": "how long", "group": "method"}
    assert "return reward * by" in burnish("show", "own.py:half").out
    assert "--patience" in burnish("train", "own.py:Mine", "--help").out
    done = burnish("train", "own.py:Mine", "--patience", "x", "--credit", "own.py:half", "--credit.by", "y")
    assert done.code == 2
    assert "patience = 'x'" in done.err
    assert "half.by = 'y'" in done.err
    done = burnish("train", "own.py:Mine", "--patience", "4", "--credit", "own.py:half", "--credit.by", "0.25", "--dry-run")
    assert "own.py:half:by=0.25" in done.out


def test_claims_come_from_their_files(burnish, tmp_path):
    assert json.loads(burnish("show", "grpo", "--json").out)["claim"] == {"state": "none"}
    (tmp_path / "claims" / "results").mkdir(parents=True)
    (tmp_path / "claims" / "results" / "grpo.json").write_text('{"state": "holds"}')
    assert json.loads(burnish("show", "grpo", "--json").out)["claim"] == {"state": "holds"}


@pytest.mark.parametrize("name", names())
def test_help_of_a_method_lists_every_option_with_its_default(burnish, name):
    done = burnish("train", name, "--help")
    assert done.code == 0
    for option in json.loads(burnish("show", name, "--json").out)["options"]:
        assert f"  --{option['name'].replace('_', '-')} " in done.out


def test_help_says_where_options_are(burnish):
    assert "burnish train METHOD --help lists all options" in burnish("train", "--help").out
    for command in ("resume", "eval", "sample", "list", "show", "runs"):
        done = burnish(command, "--help")
        assert done.code == 0
        assert "Usage" in done.out


def test_version(burnish):
    import burnish as package

    assert package.__version__ in burnish("--version").out


def test_a_dry_run_prints_the_plan_and_makes_nothing(burnish, tmp_path):
    done = burnish("train", "ppo", "--epochs", "2", "--eval-every", "10", "--dry-run")
    assert done.code == 0
    for words in ("stages", "gae:gamma=1.0:lam=0.95", "2 updates per step", "a trainable copy of the policy", "drawn tokens, at most"):
        assert words in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_for_scripts(burnish):
    said = json.loads(burnish("train", "grpo", "--credit", "ordinal", "--penalty", "none", "--steps", "10", "--dry-run", "--json").out)
    assert said["parts"]["credit"] == ["ordinal"]
    assert said["models"] == {"policy": "tiny"}
    assert said["budget"]["updates"] == 10
    assert said["budget"]["answers per step"] == 128
    brought = json.loads(burnish("train", "reinforce", "--credit", "gae", "--dry-run", "--json").out)
    assert brought["models"]["critic"] == "a trainable copy of the policy"
    exact = json.loads(
        burnish("train", "grpo", "--divergence", "hellinger", "--penalty", "exact", "--penalty.weight", "1", "--dry-run", "--json").out
    )
    assert exact["forwards"]["reference"].startswith("distribution")


@pytest.mark.parametrize("name", names())
def test_every_method_has_a_plan(burnish, name):
    done = burnish("train", name, "--dry-run")
    assert done.code == 0, done.err
