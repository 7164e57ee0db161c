"""The report: what it warns of, what it escapes, and that every kind of run gets a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from burnish.training.folder import RunFolder
from burnish.training.report import rebuild, report, warnings
from burnish.training.report_page import Chart, Series, drawn, escaped, number, page, percent, smoothed, thinned, ticks, token
from burnish.training.request import resolve

EVIL = '<script>alert("&")</script>'
FINE = {
    "rows": 32,
    "truncated_share": 0.1,
    "failed_rows": 0,
    "unjudged_rows": 0,
    "entropy": 1.0,
    "reward_std": 0.5,
    "unanimous_share": 0.25,
    "gradient_norm": 1.0,
    "ratio_min": 1.0,
    "ratio_mean": 1.0,
    "ratio_max": 1.0,
    "effective_share": 1.0,
    "advantage_std": 0.9,
    "updates": 1,
    "trained_steps": 100,
}


def steps(n: int = 8, **changes: Any) -> list[dict[str, Any]]:
    """Rows of a run in which all is well, but for the changes; a list is a value for each step."""
    rows = [{"step": i + 1, **FINE, "reward_mean": 0.5 + i / 100, "right_share": 0.5 + i / 100} for i in range(n)]
    return [r | {k: v[i] if isinstance(v, list) else v for k, v in changes.items()} for i, r in enumerate(rows)]


# -- warnings
def test_a_run_in_which_all_is_well_has_no_warnings():
    assert warnings(steps()) == []
    assert warnings([]) == []
    assert warnings([{"step": 4, "evaluation": {"sampled": 0.0}}]) == []


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("Every reward of the run was 0", {"reward_mean": 0.0, "reward_std": 0.0}),
        ("nothing is left to learn", {"reward_mean": 1.0, "reward_std": 0.0}),
        ("In 5 of 8 steps all answers", {"unanimous_share": [1.0] * 5 + [0.2] * 3, "advantage_std": [0.0] * 5 + [1.0] * 3}),
        ("stood in groups of one reward", {"unanimous_share": 0.9}),
        ("no token was trained on", {"trained_steps": 0}),
        ("cut at the limit", {"truncated_share": 0.8}),
        ("do not see the same model", {"ratio_mean": 1.02}),
        ("do not see the same model", {"ratio_max": 3.0}),
        ("worth only 20.0 %", {"effective_share": 0.2}),
        ("entropy fell from 1 to 0.01", {"entropy": [1.0, 0.8, 0.4, 0.2, 0.1, 0.05, 0.01, 0.01]}),
        ("3 got no reward from the judge and 2 failed", {"unjudged_rows": [3] + [0] * 7, "failed_rows": [0, 2] + [0] * 6}),
        ("gradient_norm was no finite number at step 3", {"gradient_norm": [1.0, 1.0, float("nan")] + [1.0] * 5}),
    ],
)
def test_each_rule_speaks_alone(said: str, changes: dict[str, Any]):
    found = warnings(steps(**changes))
    assert len(found) == 1, found
    assert said in found[0]


def test_groups_of_one_that_have_an_advantage_are_no_warning():
    assert warnings(steps(unanimous_share=1.0)) == []


def test_later_passes_may_move_the_ratio():
    assert warnings(steps(ratio_max=3.0, updates=4)) == []


def test_a_policy_that_is_right_may_lose_its_entropy():
    assert warnings(steps(entropy=[1.0] + [0.001] * 7, right_share=0.99)) == []


def test_metrics_of_another_method_are_no_reason_to_warn():
    assert warnings([{"step": i, "rows": 16, "nll": 2.0, "gradient_norm": 1.0, "updates": 1} for i in (1, 2, 3)]) == []


# -- text and numbers
def test_text_is_escaped_and_nothing_hides():
    assert "<script>" not in escaped(EVIL)
    assert escaped("<a>") == "&lt;a&gt;"
    assert escaped("a\nb") == "a<s>⏎</s>\nb"
    assert escaped("\x00\x1b\x7f") == "<s>␀</s><s>␛</s><s>␡</s>"
    assert escaped("\u202e\u200b\ud800") == "<s>[U+202E]</s><s>[U+200B]</s><s>[U+D800]</s>"


def test_a_token_has_its_value_in_its_shade_and_title():
    assert token("<a>", -1.0, 1.0, 'advantage "−1"') == '<i class="token n8" title="advantage &quot;−1&quot;">&lt;a&gt;</i>'
    assert 'class="token p1"' in token("x", 0.01, 1.0, "")
    assert 'class="token"' in token("x", None, 1.0, "")
    assert "␣" in token(" ", 0.0, 1.0, "")


def test_numbers_are_short():
    assert [number(x) for x in (0.0, 1.0, 0.123456, -2.5, 12345.0, 1.5e-7, None, float("nan"), float("inf"))] == [
        "0",
        "1",
        "0.1235",
        "−2.5",
        "12,345",
        "1.5e−7",
        "–",
        "–",
        "∞",
    ]
    assert percent(0.25) == "25.0 %"


def test_what_is_put_into_the_page_is_not_read_again():
    assert "{{nav}}" in page(title="", nav="", body="{{nav}}")


# -- charts
def test_ticks_are_round_and_hold_the_range():
    assert ticks(0.0, 1.0) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert ticks(3.0, 17.0)[0] <= 3.0
    assert ticks(3.0, 17.0)[-1] >= 17.0


def test_lines_pass_over_what_is_missing():
    assert smoothed([1.0, None, 3.0], 2) == [1.0, None, 3.0]
    figure = drawn(Chart("Loss", [Series("clip", [1, 2, 3, 4], [0.1, None, 0.3, 0.2])]))
    assert re.search(r'class=raw d="M[\d.]+ [\d.]+M[\d.]+ [\d.]+L[\d.]+ [\d.]+"', figure)
    assert drawn(Chart("Loss", [Series("clip", [1], [None])])) == ""


@pytest.mark.parametrize("values", [[0.0, 0.0], [5.0, 5.0], [-1.0, -1.0], [1e-9, 1e9], [0.0, 1e-12], [-1e6, 1e6], [7.0]])
@pytest.mark.parametrize("share", [False, True])
def test_any_values_can_be_drawn(values: list[float], share: bool):
    figure = drawn(Chart("x", [Series("x", range(len(values)), values)], share=share))
    assert "nan" not in figure
    assert "inf" not in figure


def test_long_runs_are_thinned_to_their_means():
    steps, values = thinned(range(1000), [1.0] * 999 + [None], most=100)
    assert len(steps) == len(values) == 100
    assert set(values) == {1.0}
    assert steps[-1] == 999


# -- whole pages
class Reader(HTMLParser):
    """Every element and address of a page; raises where an element is closed that is not open."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [v or "" for k, v in attrs if k in ("src", "href", "action")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def evaluation(reward: float, answer: str) -> dict[str, Any]:
    sample = {"prompt": f"add1+2 {EVIL}", "answer": answer, "reward": reward, "reference": "3"}
    by_task = {"add": reward, EVIL: 0.5}
    return {
        "contexts": 64,
        "sampled": reward,
        "right": reward,
        "standard_error": 0.03,
        "greedy": reward,
        "by_task": by_task,
        "samples": [sample],
    }


def rollout(step: int) -> dict[str, Any]:
    one = {"step": step, "context": "add/0", "prompt": EVIL, "answer": "", "reference": "<b>", "stop": "LIMIT"}
    pieces = ["<a>", EVIL, "\n", "\x00"]
    return one | {
        "pieces": pieces,
        "reward": 1.0,
        "sampled_logp": [-1.0] * 4,
        "advantage": [0.5, -0.5, None, 0.0],
        "items": {"tests": [1.0, 0.0, None]},
    }


def run_folder(path: Path, metrics: list[dict[str, Any]], rollouts: list[dict[str, Any]]) -> RunFolder:
    folder = RunFolder(path)
    folder.create()
    for name, rows in (("metrics", metrics), ("rollouts", rollouts)):
        for row in rows:
            folder.log(name, row)
    for row in metrics:
        if "evaluation" not in row:
            folder.log("timing", {"step": row["step"], "produce_s": 0.2, "consume_s": 0.1})
    folder.write("ledger.json", {"sampled_steps": 1000})
    folder.write("versions.json", {"burnish": "0.1.0"})
    folder.release()
    return folder


def test_a_page_escapes_all_that_people_and_models_wrote(tmp_path: Path):
    metrics = [*steps(12), {"step": 6, "evaluation": {"sampled": 0.4, "standard_error": 0.02}}]
    folder = run_folder(tmp_path / "<i>run", metrics, [rollout(1), rollout(12)])
    text = report(folder, resolve("grpo", {"task": "add", "lr": 0.5}), evaluation(0.25, EVIL), evaluation(0.75, "<a>\n"))
    read = Reader(text)
    assert read.open == []
    assert read.tags.count("script") == 1
    assert "reference</span> <code>&lt;b&gt;</code>" in text
    assert "&lt;a&gt;" in text
    assert all(link.startswith("#") for link in read.links)
    assert not re.search(r"url\(|@import|https?://", text)
    assert "rose by 50.0 ± 8.3 points, more than chance explains" in text
    assert "1 turned right" not in text
    assert ">lr</b>" in text


def test_methods_of_every_kind_have_a_page(tmp_path: Path):
    likelihood = {"contexts": 8, "nll": 2.5, "standard_error": 0.1}
    sft = run_folder(tmp_path / "sft", [{"step": 1, "rows": 4, "nll": 2.0, "gradient_norm": 1.0, "updates": 1}], [])
    assert "Loss: nll" in report(sft, resolve("sft", {"task": "add"}), likelihood, {**likelihood, "nll": 1.5})
    best = run_folder(tmp_path / "best", [], [])
    text = report(best, resolve("best-of-n", {"task": "add"}), evaluation(0.0, "x"), evaluation(1.0, "y"))
    assert "no steps" in text
    assert "≤ 4.7 %" in text
    assert "coverage" in text
    assert Reader(text).open == []


def test_a_long_run_stays_small(tmp_path: Path):
    metrics = steps(200, **{f"metric_{i}": [i + j / 7 for j in range(200)] for i in range(12)})
    many = [
        rollout(s) | {"context": f"c{i // 8}", "pieces": ["word"] * 500, "advantage": [0.1] * 500} for s in (1, 100, 200) for i in range(16)
    ]
    folder = run_folder(tmp_path / "long", metrics, many)
    text = report(folder, resolve("grpo", {"task": "add"}), evaluation(0.1, "x" * 5000), evaluation(0.2, "y" * 5000))
    assert len(text.encode()) < 600_000


def test_a_report_can_be_written_anew_from_its_folder(tmp_path: Path):
    folder = run_folder(tmp_path / "run", steps(3), [])
    folder.write("config.json", {"method": "grpo", "said": {"task": "add"}, "resolved": {}})
    folder.write("evaluations.json", {"before": evaluation(0.1, "x"), "after": evaluation(0.1, "x")})
    rebuild(folder.path)
    assert "did not change" in (folder.path / "report.html").read_text(encoding="utf-8")
    assert json.loads((folder.path / "ledger.json").read_text()) == {"sampled_steps": 1000}
