"""What cannot run is refused: everything at once, with place, nearest name, what is allowed, and the fix."""

import pytest

from burnish.cli.describe import GROUPS, options_of
from burnish.errors import Refused
from burnish.methods.fields import choices_of, fields_of
from burnish.methods.registry import method, names
from burnish.models.options import Learner
from burnish.training.request import RunOptions, resolve, settable

FILE = """\
lerning_rate = 0.1
steps = "many"
temperature = 0
group-size = 1
rounds = 3
eval_size = "16"
schedule = "cosin"
model = "tniy"

[objective]
name = "clp"

[credit]
esp = 1e-3
"""


@pytest.fixture
def complaint(burnish, tmp_path):
    (tmp_path / "run.toml").write_text(FILE)
    done = burnish("train", "grpo", "--config", "run.toml", "--lerning-rat", "1")
    assert done.code == 2
    assert done.out == ""
    return done.err


def test_all_mistakes_of_a_file_are_listed_at_once(complaint):
    assert complaint.startswith("error: 11 problems:\n1. ")
    assert "problems" not in complaint[20:]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (1, "there is no option 'lerning_rate'; did you mean 'lr'?"),
        (2, "steps = 'many'"),
        (3, "a policy gradient needs draws"),
        (4, "normalized compares the answers to one context, and there is one answer each"),
        (5, "there is no option 'rounds'; it is an option of dapo"),
        (6, 'eval_size = "16" is text'),
        (7, "schedule = 'cosin': did you mean 'cosine'?\n  expected: one of constant, linear, cosine"),
        (8, "tniy: there is no such model\n  fix:      did you mean 'tiny'?"),
        (11, "objective has no 'clp'; did you mean 'clip'?\n  expected: cispo, clip, match, nll, score"),
        (14, "normalized has no option 'esp'; did you mean 'eps'?"),
    ],
)
def test_each_mistake_has_its_line_and_the_nearest_name(complaint, line, words):
    assert f". run.toml:{line}: {words}" in complaint


def test_a_mistake_on_the_command_line_has_no_line(complaint):
    assert ". there is no option 'lerning_rat'; did you mean 'lr'?" in complaint


def test_a_flag_that_mends_the_file_is_enough(burnish, tmp_path):
    (tmp_path / "run.toml").write_text('steps = "many"\nlr = -1\n[objective]\nlow = "x"\n')
    done = burnish("train", "grpo", "--config", "run.toml", "--steps", 3, "--lr=1e-3", "--objective.low", 0.1, "--dry-run")
    assert done.code == 0, done.err


def test_a_flag_wins_over_the_file_and_tables_become_dotted_names(burnish, tmp_path):
    (tmp_path / "run.toml").write_text('steps = 7\nseed = 5\n[objective]\nname = "cispo"\nhigh = 3.0\n[kl-weight]\ntarget = 3\n')
    done = burnish("train", "ppo", "--config", "run.toml", "--steps", "9", "--dry-run")
    assert done.code == 0, done.err
    assert "cispo:high=3.0" in done.out
    assert "target=3" in done.out
    assert "steps                            9" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["grpo", "--temperature", "0"], "--temperature 1"),
        (["grpo", "--group-size", "1"], "--group-size 8, or another --credit"),
        (["grpo", "--objective", "match"], "--divergence with one of"),
        (["grpo", "--penalty", "hellinger"], "--divergence hellinger --penalty exact"),
        (["grpo", "--credit", "none"], "--credit with one of"),
        (["grpo", "--task", "rows.jsonl"], "GRPO learns from 'reward'"),
        (["sft", "--task", "bare.jsonl"], "SFT learns from 'demonstration'"),
        (["grpo", "--task", "srot"], "did you mean 'sort'?"),
        (["grpo", "--level", "9"], "has no level 9"),
        (["grppo"], "did you mean 'grpo'?"),
        (["grpo", "--credit", "ordnal"], "credit has no 'ordnal'; did you mean 'ordinal'?"),
        (["grpo", "--critic", "tniy"], "critic: tniy: there is no such model"),
        (["grpo", "--steps"], "--steps needs a value\n  expected: a whole number from 1 on"),
        (["grpo", "--credit.weight", "2"], "normalized has no option 'weight'"),
        (["grpo", "--penalty", "k1,k2", "--penalty.weight", "2"], "--penalty k1:weight=2,k2:weight=2"),
        (["grpo", "--judge", "good.py:lenght"], "there is no 'lenght' in the file"),
        (["grpo", "--lr", "-1"], "lr = '-1': Input should be greater than 0\n  expected: a number above 0"),
        (["grpo", "--config", "none.toml"], "none.toml: the file cannot be read"),
        (["grpo", "--config", "broken.toml"], "broken.toml: the file is not TOML"),
    ],
)
def test_what_cannot_mean_anything_is_refused_with_its_fix(burnish, tmp_path, words, said):
    (tmp_path / "rows.jsonl").write_text('{"prompt": "a", "completion": "b"}\n')
    (tmp_path / "bare.jsonl").write_text('{"prompt": "a"}\n')
    (tmp_path / "broken.toml").write_text("steps = [\n")
    (tmp_path / "good.py").write_text("def length(answer):\n    return 0.0\n")
    done = burnish("train", *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "runs").exists()


def test_a_judge_that_cannot_be_read_is_one_mistake(burnish, tmp_path):
    (tmp_path / "bad.py").write_text("import nothing_of_this_name\n")
    done = burnish("train", "grpo", "--judge", "bad.py:reward")
    assert done.code == 2
    assert "problems" not in done.err
    assert "nothing_of_this_name" in done.err


def test_an_existing_run_is_refused_before_anything_is_built(burnish, trained):
    done = burnish("train", "grpo", "--out", trained.path)
    assert done.code == 2
    assert f"burnish resume {trained.path}" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Usage"),
        (["trian"], "did you mean 'train'?"),
        (["train"], "which method?"),
        (["train", "grpo", "ppo"], "what is 'ppo'?"),
        (["train", "grpo", "-5"], "options are written --name value"),
        (["train", "grpo", "--json=1"], "--json takes no value"),
        (["list", "--family", "suprvised"], "did you mean 'supervised'?"),
        (["list", "--feedback", "rewards"], "did you mean 'reward'?"),
        (["list", "--parts", "--kind", "method"], "--parts lists parts"),
        (["show", "grop"], "did you mean 'grpo'?"),
        (["show", "ordnal"], "did you mean 'ordinal'?"),
        (["eval", "tniy"], "did you mean 'tiny'?"),
        (["eval", "tiny", "--task", "srot", "--eval-size", "x"], "2 problems"),
        (["sample", "tiny", "1+1", "--task", "sort"], "prompts or a task"),
    ],
)
def test_usage_errors_have_exit_code_2(burnish, words, said):
    done = burnish(*words)
    assert done.code == 2
    assert said in done.out + done.err


# -- every option of every method
WRONG = {"option": ["no", {"such": "value"}], "part": "no_such_part", "parts": "no_such_part", "role": 5, "memory": 5}


def every_option():
    for name in names():
        for owner in (RunOptions, Learner):
            yield from ((name, f.name, WRONG["option"]) for f in fields_of(owner).values())
        yield from ((name, f.name, WRONG[f.kind]) for f in settable(method(name)).values())
        yield from ((name, o["name"], "no such value") for o in options_of(method(name)) if "." in o["name"] and o["type"] != "str")


@pytest.mark.parametrize("name", names())
def test_a_value_of_the_wrong_type_is_refused_naming_the_option(name):
    swept = [(option, wrong) for method_, option, wrong in every_option() if method_ == name]
    assert len(swept) > 30
    for option, wrong in swept:
        with pytest.raises(Refused) as error:
            resolve(name, {option: wrong})
        assert option.rpartition(".")[2] in str(error.value), f"{option}: {error.value}"


def idle(name, option, choice):
    """Does no part of the method read this? Only `behaviour` can be set for nothing."""
    cls = method(name)
    parts = [p for p in (getattr(cls, "objective", None), *getattr(cls, "penalty", ())) if p]
    return option == "behaviour" and choice != cls.behaviour and not any("behaviour_logp" in p.signature.columns for p in parts)


@pytest.mark.parametrize("name", names())
def test_every_choice_that_is_documented_is_taken(name):
    fields = {n: f for c in (RunOptions, Learner, method(name)) for n, f in fields_of(c).items()}
    for option, field in fields.items():
        for choice in choices_of(field.type):
            if idle(name, option, choice):
                with pytest.raises(Refused, match=f"{option} has no effect"):
                    resolve(name, {option: choice})
                continue
            request = resolve(name, {option: choice})
            found = {**vars(request.options), **vars(request.learner), **request.values}[option]
            assert found == choice


@pytest.mark.parametrize("name", names())
def test_every_option_can_be_said_with_its_own_default(name):
    for option in options_of(method(name)):
        value = option["default"]
        said = "none" if value is None else ",".join(value) if isinstance(value, list) else value
        said = "none" if said == "" and option["group"] == "slot" else said
        resolve(name, {option["name"]: said if isinstance(said, tuple) else str(said)})


@pytest.mark.parametrize("name", names())
def test_every_option_has_help_and_a_group(name):
    for option in options_of(method(name)):
        assert option["help"], option
        assert option["group"] in GROUPS


def test_numbers_of_other_types_are_not_guessed():
    for wrong in (True, "1.5", 1.5, None, [1], "nan"):
        with pytest.raises(Refused, match="steps"):
            resolve("grpo", {"steps": wrong})
    with pytest.raises(Refused, match="temperature"):
        resolve("grpo", {"temperature": "nan"})


def test_the_pair_of_a_constant_reduction_can_be_said():
    assert resolve("grpo", {"reduction": "constant:12"}).values["reduction"] == ("constant", 12.0)
    with pytest.raises(Refused, match="reduction"):
        resolve("grpo", {"reduction": "constant:x"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("grpo", {"critic": "tiny"}),
        ("grpo", {"critic_lr": 0.1}),
        ("sft", {"reference": "tiny"}),
        ("reinforce", {"divergence": "hellinger"}),
    ],
)
def test_an_option_that_nothing_reads_is_refused(name, said):
    with pytest.raises(Refused, match="has no effect"):
        resolve(name, said)


def test_a_buffer_of_no_length_and_an_option_of_another_method_are_refused():
    with pytest.raises(Refused, match=r"overlong\.buffer"):
        resolve("dapo", {"reward.buffer": 0})
    with pytest.raises(Refused, match="it is an option of"):
        resolve("sft", {"temperature": 0.5})
