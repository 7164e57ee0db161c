"""The report of a run: one HTML file that needs nothing else. What happened, what the model wrote, how it worked, what to doubt."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from inspect import getdoc
from pathlib import Path
from statistics import fmean, median
from typing import Any

from ..memory.base import Memory
from ..methods.fields import Role, fields_of
from ..models.options import Learner
from ..parts import Over, Part
from .folder import RunFolder
from .report_page import Chart, Series, by_kind, drawn, escaped, finite, number, page, percent, rollouts, side_by_side, table, time_spent
from .request import Request, RunOptions, resolve

Row = Mapping[str, Any]
SECTIONS = ("result", "curves", "rollouts", "how it worked", "warnings")
STAGES = {"collect": (), "judge": (), "assign": ("reward", "keep", "credit", "shape"), "improve": (), "evolve": (), "deploy": ()}
IN_LOSS = ("objective", "penalty", "divergence", "critic_objective", "measure")
SETTINGS_OF = {"collect": ("prompts", "group_size", "temperature", "top_p", "top_k"), "improve": ("reduction", "epochs", "minibatches")}
CHARTS = (  # title, columns with their labels, note; a column that ends in _share is a share
    ("Reward", {"reward_mean": "mean", "right_share": "right"}, "of the answers drawn in training"),
    ("Entropy", {"entropy": "nats per token"}, "of the policy as it draws"),
    ("Length", {"length_mean": "tokens per answer"}, ""),
    ("Truncated", {"truncated_share": "answers cut at the limit"}, ""),
    ("Unanimous", {"unanimous_share": "answers in groups of one reward"}, ""),
    ("Ratio to the sampler", {"ratio_min": "min", "ratio_max": "max", "ratio_mean": "mean"}, "before clipping"),
    ("Clipped", {"clip_share": "tokens whose clip binds"}, ""),
    ("Effective samples", {"effective_share": "share"}, "(Σr)² / n Σr²"),
    ("Gradient norm", {"gradient_norm": "policy", "critic_gradient_norm": "critic"}, "before clipping"),
    ("Advantage", {"advantage_mean": "mean", "advantage_std": "std"}, "over trained tokens"),
)
NUMBERS = {"sampled": "sampled at temperature 1", "greedy": "greedy", "nll": "held-out demonstrations"}
COVERAGE = " This method asks the judge when it answers: read it as the coverage of its draws."
CURVES = "Faint: each step. Strong: the mean of the steps around it. Dots: held-out evaluations with 95 % intervals."
SHOWN = {"reward_mean", "right_share", "nll"}  # however still they are
PLAIN = ("step", "rows", "updates", "sampled_steps", "trained_steps", "evaluation")


def report(folder: RunFolder, request: Request, before: Row, after: Row) -> str:
    """The page of a finished run, from its logs and its two evaluations."""
    logged = folder.rows("metrics")
    rows = [r for r in logged if "evaluation" not in r]
    found = [(r["step"], r["evaluation"]) for r in logged if "evaluation" in r]
    found = [(0, before), *found, (rows[-1]["step"], after)] if rows else []
    doubts = warnings(rows)
    written, timing = folder.rows("rollouts"), folder.rows("timing")
    sections = [
        _result(folder, request, before, after, rows, timing, doubts),
        _heading("curves", CURVES if rows else "") + _curves(request, rows, found),
        _heading("rollouts", "What the model wrote, and what it was told.") + rollouts(written),
        side_by_side(before.get("samples", []), after.get("samples", [])),
        _heading("how it worked", "") + _how(folder, request, rows, timing),
        _heading("warnings", "" if doubts else "None." if rows else "None: there were no steps."),
        *(f"<p class=warning>{escaped(d)}</p>" for d in doubts),
    ]
    nav = " ".join(f'<a href="#{s.replace(" ", "-")}">{s[0].upper()}{s[1:]}</a>' for s in SECTIONS)
    return page(title=escaped(f"{request.name} on {Path(request.options.task).stem}"), nav=nav, body="\n".join(sections))


def rebuild(path: Path) -> None:
    """Write the report of a finished run anew, from its folder."""
    folder = RunFolder(path)
    config, found = folder.read("config.json"), folder.read("evaluations.json")
    request = resolve(config["method"], {**config["said"], "out": str(path)})
    folder.write("report.html", report(folder, request, found["before"], found["after"]))


def _heading(name: str, note: str) -> str:
    said = f"<p class=soft>{escaped(note)}</p>" if note else ""
    return f'<h2 id="{name.replace(" ", "-")}">{name[0].upper()}{name[1:]}</h2>{said}'


# -- 1. the result
def _result(
    folder: RunFolder, request: Request, before: Row, after: Row, rows: Sequence[Row], timing: Sequence[Row], doubts: Sequence[str]
) -> str:
    options = request.options
    exact = all(e.get("right") == e.get("sampled") for e in (before, after)) and "sampled" in before
    name = "accuracy" if exact else "reward" if "sampled" in before else "negative log-likelihood per token"
    seconds = sum(t.get("produce_s", 0) + t.get("consume_s", 0) for t in timing)
    facts = {
        "run folder": f"<code>{escaped(folder.path)}</code>",
        "steps": str(len(rows)) if rows else "none: no weights change",
        "seed": str(options.seed),
        "seconds of training": number(round(seconds, 1)) if timing else "–",
        "held-out problems": str(after.get("contexts", "–")),
    }
    notice = f'<a class=notice href="#warnings">{len(doubts)} warning{"s" * (len(doubts) > 1)}: {escaped(doubts[0])}</a>' if doubts else ""
    cards = "".join(_card(n, label, name, before, after, exact) for n, label in NUMBERS.items() if n in before)
    listed = "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in facts.items())
    return (
        f'<header id="result"><h1>{escaped(request.name)} <i>on</i> {escaped(Path(options.task).stem)}'
        f" <i>with</i> {escaped(options.model)}</h1>"
        f"<p class=lede>{_verdict(name, before, after, exact)}{COVERAGE if request.method.sees_truth else ''}</p>{notice}"
        f"<div class=pair>{cards}</div><dl class=facts>{listed}</dl></header>{by_kind(before, after)}"
    )


def _card(number_of: str, label: str, name: str, before: Row, after: Row, exact: bool) -> str:
    say = percent if exact else number
    old, new = finite(before.get(number_of)), finite(after.get(number_of))
    errors = [_half(e, number_of, exact) for e in (before, after)]
    near = [_near(v, e, found.get("contexts", 0), exact, say) for v, e, found in ((old, errors[0], before), (new, errors[1], after))]
    return (
        f"<div class=card><div class=soft>held-out {name}, {label}</div>"
        f"<div class=big><span>{say(old)}{near[0]}</span><span>→</span><strong>{say(new)}</strong>{near[1]}</div></div>"
    )


def _near(value: float | None, error: float | None, n: int, exact: bool, say: Callable[[float | None], str]) -> str:
    """How far the number may be off. Where none or all were right there is no spread to see: 3/n bounds the rate at 95 %."""
    if value is None or error is None:
        return ""
    if exact and value in (0, 1) and n > 3:
        return f"<em>{'≤' if value == 0 else '≥'} {say(abs(value - 3 / n))}</em>"
    return f"<em>± {say(error)}</em>"


def _half(found: Row, number_of: str, exact: bool) -> float | None:
    """1.96 standard errors; the greedy one follows from its mean where every reward is 0 or 1."""
    if number_of != "greedy":
        error = finite(found.get("standard_error"))
        return None if error is None else 1.96 * error
    p, n = finite(found.get("greedy")), found.get("contexts", 0)
    return 1.96 * (p * (1 - p) / (n - 1)) ** 0.5 if exact and p is not None and n > 1 and 0 <= p <= 1 else None


def _verdict(name: str, before: Row, after: Row, exact: bool) -> str:
    key = "sampled" if "sampled" in before else "nll"
    old, new = finite(before.get(key)), finite(after.get(key))
    if old is None or new is None:
        return f"The held-out {name} is not known before and after."
    change, error = new - old, sum((_half(e, key, exact) or 0) ** 2 for e in (before, after)) ** 0.5
    if change == 0:
        return f"The held-out {name} did not change."
    far = f"{100 * abs(change):.1f} ± {100 * error:.1f} points" if exact else f"{number(abs(change))} ± {number(error)}"
    beyond = "more than" if abs(change) > error else "no more than"
    return f"The held-out {name} {'rose' if change > 0 else 'fell'} by {far}, {beyond} chance explains."


# -- 2. the curves
def _curves(request: Request, rows: Sequence[Row], found: Sequence[tuple[int, Row]]) -> str:
    if not rows:
        return "<p>There are no steps: this method changes no weights, so nothing moved. What it gives stands in the result above.</p>"
    names = [n for n in dict.fromkeys(n for r in rows for n in r) if not n.startswith("total_") and n not in PLAIN]
    charts = [*CHARTS, *_terms(request)]
    charts += [(n.replace("_", " "), {n: ""}, "") for n in names if not any(n in columns for _, columns, _ in charts)]
    still = {n: values[0] for n in names if len(set(map(number, values := _values(rows, n)))) == 1}
    moving = {*names} - {*still} | SHOWN
    figures = [drawn(_chart(*chart, rows, found)) for chart in charts if moving & {*chart[1]}]
    resting = ", ".join(f"{escaped(n.replace('_', ' '))} {number(v)}" for n, v in still.items() if n not in SHOWN)
    return f"<div class=grid>{''.join(figures)}</div>" + (f"<p class=soft>The same in every step: {resting}.</p>" if resting else "")


def _chart(title: str, columns: Mapping[str, str], note: str, rows: Sequence[Row], found: Sequence[tuple[int, Row]]) -> Chart:
    band, steps = "ratio_min" in columns, [float(r["step"]) for r in rows]
    lines = {n: Series(label, steps, _values(rows, n), paint=(4, 4, 0)[i] if band else i) for i, (n, label) in enumerate(columns.items())}
    if "right_share" in lines and lines["right_share"].values == lines["reward_mean"].values:
        lines["reward_mean"] = Series("right", steps, lines.pop("right_share").values)
    dots = {"reward_mean": "sampled", "nll": "nll"}.get(next(iter(columns)), "")
    series = [*lines.values(), *_dots(found, dots)]
    share = all(n.endswith("_share") for n in columns)
    share |= "reward_mean" in columns and all(v is None or 0 <= v <= 1 for s in series for v in s.values)
    return Chart(title, series, note if any(v is not None for s in lines.values() for v in s.values) else "", share=share, band=band)


def _dots(found: Sequence[tuple[int, Row]], name: str) -> list[Series]:
    """Evaluations as dots, with 1.96 standard errors."""
    kept = [(step, e) for step, e in found if name in e]
    errors = [1.96 * (finite(e.get("standard_error")) or 0.0) for _, e in kept]
    return (
        [Series("held-out", [s for s, _ in kept], [finite(e[name]) for _, e in kept], error=errors, paint=1 if name == "nll" else 2)]
        if kept
        else []
    )


def _terms(request: Request) -> list[tuple[str, dict[str, str], str]]:
    """A chart for each term of the loss."""
    return [
        (f"Loss: {part.name}", {part.name: ""}, "" if part.weight == 1 else f"unweighted; weight {part.weight:g}")
        for slot in ("objective", "critic_objective", "penalty")
        for part in _parts(request.values.get(slot))
    ]


def _values(rows: Sequence[Row], name: str) -> list[float | None]:
    return [finite(r.get(name)) for r in rows]


# -- 4. how it worked
def _how(folder: RunFolder, request: Request, rows: Sequence[Row], timing: Sequence[Row]) -> str:
    ledger, versions = (folder.read(n) if (folder.path / n).exists() else {} for n in ("ledger.json", "versions.json"))
    spent = [[escaped(n.replace("_", " ")), number(float(x))] for n, x in ledger.items()]
    where, said = shlex.quote(str(folder.path)), _first_line(request.method) or request.name
    commands = "\n".join(escaped(f"burnish {verb} {where}") for verb in ("resume", "eval", "sample"))
    return "".join(
        [
            f"<p>{escaped(said)}{_papers(request.method.paper, said)}</p>",
            _flow(request),
            f"<h3>Models and what they are asked</h3>{_plan(request)}",
            f"<h3>Settings</h3>{_settings(request)}",
            f"<h3>Time</h3>{time_spent(rows, timing)}" if timing else "",
            f"<div class=pair><div><h3>Spent</h3>{table(('', ''), spent, right=(1,))}</div>" if spent else "<div class=pair>",
            f"<div><h3>Computed by</h3>{table(('', ''), [[escaped(n), escaped(x)] for n, x in versions.items()])}</div></div>",
            f"<h3>Go on</h3><pre>{commands}</pre>",
        ]
    )


def _flow(request: Request) -> str:
    in_loss = tuple(s for s in IN_LOSS if s != "critic_objective" or "critic" in request.roles)
    stages = {**STAGES, "improve": in_loss} if request.method.kind == "method" else {"deploy": ()}
    return f"<ol class='flow card'>{''.join(_stage(request, n, slots) for n, slots in stages.items())}</ol>"


def _stage(request: Request, name: str, slots: Sequence[str]) -> str:
    offline = "demonstration" in request.method.asks
    said = "Nobody is asked: demonstrations are right." if offline and name == "judge" else _first_line(getattr(request.method, name))
    known = SETTINGS_OF.get(name, ())[: 1 if offline and name == "collect" else None]
    shown = [f"{n.replace('_', ' ')} {_plain(request.values[n])}" for n in known if n in request.values]
    shown += [request.judge.name] if name == "judge" and request.judge and not offline else []
    shown += [f"{n} {_plain(v)}" for n, v in request.values.items() if name == "evolve" and isinstance(v, Memory)]
    tags = " ".join(f"<span class=tag>{escaped(s)}</span>" for s in shown)
    parts = "".join(_part(slot, part) for slot in slots for part in _parts(request.values.get(slot)))
    return f"<li><div><h4>{name}</h4><div class=soft>{escaped(said)}</div></div><div>{tags}{parts}</div></li>"


def _part(slot: str, part: Part) -> str:
    said = part.signature.summary
    what = f"<code>{escaped(part)}</code> <span class=soft>{escaped(said)}{_papers(part.signature.doc, said)}</span>"
    return f"<div class=part><span class=soft>{slot.replace('_', ' ')}</span><div>{what}</div></div>"


def _papers(text: str, said: str) -> str:
    """The papers that a text names and that were not said yet."""
    found = [f for f in dict.fromkeys(re.findall(r"arXiv \d{4}\.\d{4,5}", text)) if f not in said]
    return f" [{escaped(', '.join(found))}]" if found else ""


def _first_line(documented: Any) -> str:
    return (getdoc(documented) or "").split("\n")[0]


def _plan(request: Request) -> str:
    plan, values, trains = request.plan, request.values, request.method.kind == "method"
    updates = values.get("epochs", 1) * values.get("minibatches", 1)
    often = f"{updates} update{'s' * (updates > 1)} per step, each one forward and backward"
    asked: list[tuple[str, Sequence[Any], str]] = [("policy", plan.want, often) if trains else ("policy", ["answers"], "draws only")]
    asked += [("critic, live", plan.critic_want, "as often as the policy")] if "critic" in request.roles else []
    for role, outputs in plan.roles.items():
        word = "the policy as it was when it drew" if role == "old" else getattr(values.get(role), "word", "a model")
        asked.append((role, outputs, f"one forward per step ({word})"))
    lines = [[escaped(model), escaped(", ".join(getattr(o, "name", str(o)) for o in gives)), escaped(how)] for model, gives, how in asked]
    return table(("model", "gives", "how often"), lines)


def _settings(request: Request) -> str:
    """Every setting, those first that the default does not say."""
    groups: tuple[tuple[type, Callable[[str], Any]], ...] = (
        (request.method, lambda n: request.values.get(n)),
        (RunOptions, lambda n: getattr(request.options, n)),
        (Learner, lambda n: getattr(request.learner, n)),
    )
    every = [
        (f.name, _plain(value_of(f.name)), _plain(f.default), f.help)
        for kind, value_of in groups
        for f in fields_of(kind).values()
        if f.kind != "carried"
    ]
    changed = [[f"<b class=mark>{escaped(n)}</b>", escaped(v), escaped(d), escaped(h)] for n, v, d, h in every if v != d]
    rest = [[escaped(n), escaped(v), escaped(h)] for n, v, d, h in every if v == d]
    first = (
        table(("differs from the default", "here", "default", "meaning"), changed) if changed else "<p>Every setting is the default.</p>"
    )
    return (
        f"{first}<details><summary>{len(rest)} settings at their default</summary>{table(('setting', 'value', 'meaning'), rest)}</details>"
    )


def _parts(value: Any) -> list[Part]:
    """The parts in a slot, however they are held."""
    listed = value if isinstance(value, tuple) else (value,)
    found = [v.function if isinstance(v, Over) else v for v in listed]
    return [p for p in found if isinstance(p, Part)]


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(_plain(v) for v in value) or "none"
    if isinstance(value, Memory):
        return f"{type(value).__name__}({', '.join(f'{n}={x}' for n, x in value.state().items())})"
    if isinstance(value, Over):
        return f"{_plain(value.function)} to {value.to}"
    word = value.word if isinstance(value, Role) else value
    return "none" if word is None else "–" if word == "" else f"{word:g}" if isinstance(word, float) else str(word)


# -- 5. what to doubt
def warnings(rows: Sequence[Row]) -> list[str]:
    """What the metrics of the steps say against learning, in words with the remedy. Rows of evaluations are passed over."""
    steps = [r for r in rows if "evaluation" not in r]
    return [said for rule in RULES if steps and (said := rule(steps))]


def _equal(rows: Sequence[Row]) -> str:
    known = [r for r in rows if "reward_mean" in r]
    if known and all(r.get("reward_std") == 0 for r in known) and len({r["reward_mean"] for r in known}) == 1:
        fix = (
            "the problems are too hard for this model, or the judge never says yes"
            if known[0]["reward_mean"] <= 0
            else "nothing is left to learn"
        )
        return f"Every reward of the run was {number(known[0]['reward_mean'])}: no answer was better than another ({fix})."
    return ""


def _unanimous(rows: Sequence[Row]) -> str:
    """A group of one is always unanimous: only where no advantage came of it is it a warning."""
    known = [r for r in rows if "unanimous_share" in r]
    dead = sum(r["unanimous_share"] >= 1 and not r.get("advantage_std", r.get("gradient_norm", 0)) > 0 for r in known)
    if dead > len(known) / 2:
        fix = "Easier or harder problems, more prompts or larger groups give it something to compare."
        return f"In {dead} of {len(known)} steps all answers to each problem got the same reward: there was nothing to learn from. {fix}"
    share = fmean(r["unanimous_share"] for r in known) if known else 0.0
    if share > 0.8 and any(r["unanimous_share"] < 1 for r in known):
        return f"{percent(share)} of the answers stood in groups of one reward and taught nothing: most of what was drawn was wasted."
    return ""


def _nothing_trained(rows: Sequence[Row]) -> str:
    empty = sum(r.get("trained_steps", 1) == 0 for r in rows)
    return f"In {empty} of {len(rows)} steps no token was trained on: everything was filtered out." if empty > len(rows) / 2 else ""


def _truncated(rows: Sequence[Row]) -> str:
    late = _late(rows, "truncated_share")
    if late is None or late <= 0.5:
        return ""
    fix = "a higher max_steps, or a reward for ending, lets them finish."
    return f"{percent(late)} of the answers were cut at the limit in the last steps: {fix}"


def _ratio(rows: Sequence[Row]) -> str:
    first = next((r for r in rows if "ratio_mean" in r), {})
    if first.get("updates", 1) != 1:  # later passes over a batch move the ratio, rightly
        return ""
    low, mean, high = (first.get(f"ratio_{n}", 1.0) for n in ("min", "mean", "max"))
    if abs(mean - 1) <= 0.01 and low > 0.8 and high < 1.25:
        return ""
    seen = f"{number(mean)} ({number(low)} to {number(high)})"
    return f"At the first update the ratio to the sampler should be 1, and was {seen}: sampling and learning do not see the same model."


def _stale(rows: Sequence[Row]) -> str:
    known = [x for r in rows if (x := finite(r.get("effective_share"))) is not None]
    share = median(known) if known else 1.0
    fix = "fewer epochs or a smaller lr keep the policy nearer to its draws."
    return f"The draws were worth only {percent(share)} of their number (median): {fix}" if share < 0.5 else ""


def _collapsed(rows: Sequence[Row]) -> str:
    known = [x for r in rows if (x := finite(r.get("entropy"))) is not None]
    late, right = _late(rows, "entropy"), _late(rows, "right_share")
    if late is None or len(known) < 4 or (right is not None and right > 0.9):
        return ""
    if late < 0.02 or late < 0.05 * known[0]:
        fix = "a higher temperature, a smaller lr or a penalty brings it back."
        return f"The entropy fell from {number(known[0])} to {number(late)} nats: the policy hardly tries anything new, and {fix}"
    return ""


def _unheard(rows: Sequence[Row]) -> str:
    asked = sum(r.get("rows", 0) for r in rows)
    counts = {n: sum(r.get(f"{n}_rows", 0) for r in rows) for n in ("unjudged", "failed")}
    said = [f"{x} {what}" for n, what in (("unjudged", "got no reward from the judge"), ("failed", "failed")) if (x := counts[n])]
    return f"Of {asked} answers, {' and '.join(said)}; nothing was learnt from these." if said else ""


def _broken(rows: Sequence[Row]) -> str:
    bad = [(r["step"], n) for r in rows for n, x in r.items() if isinstance(x, float) and finite(x) is None]
    return f"{bad[0][1]} was no finite number at step {bad[0][0]} (and {len(bad) - 1} more): the run diverged there." if bad else ""


def _late(rows: Sequence[Row], name: str) -> float | None:
    """The mean over the last quarter."""
    known = [x for r in rows if (x := finite(r.get(name))) is not None]
    return fmean(known[-max(1, len(known) // 4) :]) if known else None


RULES = (_broken, _equal, _unanimous, _nothing_trained, _truncated, _ratio, _stale, _collapsed, _unheard)
