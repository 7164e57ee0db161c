"""What a report is made of: escaped text, numbers, charts drawn as SVG, coloured tokens, the page. Nothing here knows a run."""

from __future__ import annotations

import html
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

Values = Sequence[float | None]

WIDTH, HEIGHT = 360, 176  # of a chart, in its own units
LEFT, RIGHT, TOP, BOTTOM = 42, 8, 8, 22  # margins
POINTS = 300  # of a line; more are put together
LEVELS = 8  # shades on each side of zero
TOKENS = 2800  # of all answers together
CONTEXTS = 6  # of a step
SHOWN = 12  # held-out contexts that stand open
KINDS = {(False, True): "turned right", (True, True): "stayed right", (True, False): "turned wrong", (False, False): "stayed wrong"}


# -- text
def escaped(text: Any) -> str:
    """Text for HTML. Newlines, control and invisible characters are shown, so nothing hides and nothing reorders the page."""
    return "".join(_visible(c) for c in str(text))


def _visible(c: str) -> str:
    if c == "\n":
        return "<s>⏎</s>\n"
    if c == "\t":
        return "<s>⇥</s>\t"
    if ord(c) < 32 or ord(c) == 127:
        return f"<s>{chr(0x2421 if ord(c) == 127 else 0x2400 + ord(c))}</s>"
    if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"<s>[U+{ord(c):04X}]</s>"
    return html.escape(c)


def attribute(text: Any) -> str:
    """Text for the inside of an attribute: as `escaped`, without elements."""
    return re.sub(r"</?s>", "", escaped(text)).replace("\n", " ")


def cut(text: Any, most: int) -> str:
    """Escaped text, at most so many characters of it, and how many are left out."""
    said = str(text)
    return escaped(said) if len(said) <= most else f"{escaped(said[:most])} <s>… {len(said) - most} more characters</s>"


def number(x: float | None) -> str:
    """A number for reading: four digits that count."""
    if x is None or not math.isfinite(x):
        return "–" if x is None or x != x else "∞" if x > 0 else "−∞"
    if x == 0 or 1e-3 <= abs(x) < 1e5:
        plain = f"{x:,.0f}" if abs(x) >= 1000 or x == int(x) else f"{x:.4g}"
        return plain.replace("-", "−")
    digits, _, power = f"{x:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}".replace("-", "−")


def percent(x: float | None) -> str:
    """A share as percent."""
    return "–" if x is None or not math.isfinite(x) else f"{100 * x:.1f} %".replace("-", "−")


def finite(x: Any) -> float | None:
    """A finite number, else None."""
    return float(x) if isinstance(x, int | float) and math.isfinite(x) else None


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; columns in `right` are numbers."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}{' class=n' if i in right else ''}>{c}</{tag}>" for i, c in enumerate(cells)) + "</tr>"

    return f"<div class=wide><table>{line(head, 'th') if any(head) else ''}{''.join(line(r, 'td') for r in rows)}</table></div>"


def bars(before: float, after: float, low: float, high: float) -> str:
    """Two thin bars, before above after."""
    share = [max(0.0, min(1.0, (x - low) / ((high - low) or 1))) for x in (before, after)]
    return f"<div class=bar>{''.join(f'<u style=width:{100 * s:.1f}%></u>' for s in share)}</div>"


def by_kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Two bars for each kind of problem that both evaluations know, those that rose most first."""
    old, new = before.get("by_task") or {}, after.get("by_task") or {}
    kinds = [k for k in old if k in new]
    if not kinds:
        return ""
    every = [*old.values(), *new.values()]
    low, high = min(0.0, *every), max(1.0, *every)
    say = percent if low == 0 and high == 1 else number
    lines = []
    for k in sorted(kinds, key=lambda k: old[k] - new[k]):
        change = new[k] - old[k]
        sign = "" if change == 0 else "<span class=good>▲</span> " if change > 0 else "<span class=bad>▼</span> "
        lines.append([escaped(k), bars(old[k], new[k], low, high), say(old[k]), say(new[k]), sign + say(abs(change))])
    return f"<h3>By kind of problem, sampled</h3>{table(['', '', 'before', 'after', 'change'], lines, right=(2, 3, 4))}"


def time_spent(rows: Sequence[Mapping[str, Any]], timing: Sequence[Mapping[str, Any]]) -> str:
    """Where a step's time went."""
    draw, learn = (median(t.get(n, 0.0) for t in timing) for n in ("produce_s", "consume_s"))
    drawn_s, learnt_s = (sum(t.get(n, 0.0) for t in timing) for n in ("produce_s", "consume_s"))
    tokens, trained = (sum(r.get(n, 0) for r in rows) for n in ("sampled_steps", "trained_steps"))
    whole = (draw + learn) or 1.0
    rates = [
        f"{number(round(n / s))} {what}" for n, s, what in ((tokens, drawn_s, "drawn and judged"), (trained, learnt_s, "learnt from")) if s
    ]
    return (
        f"<div class=share><u style=width:{100 * draw / whole:.1f}%></u><u style=width:{100 * learn / whole:.1f}%></u></div>"
        f"<p>Median step: <i style=color:var(--c0)>■</i> {number(draw)} s to produce (draw, judge), "
        f"<i style=color:var(--c1)>■</i> {number(learn)} s to consume (credit, learn). "
        f"Tokens per second: {', '.join(rates)}. Evaluations are not counted.</p>"
    )


# -- charts
@dataclass(frozen=True)
class Series:
    """A line: one value or None per step. `error` makes it dots with bars of that half length."""

    label: str
    steps: Sequence[float]
    values: Values
    error: Values | None = None
    paint: int = 0


@dataclass(frozen=True)
class Chart:
    """A small chart: lines first, then dots. `band` fills between the first two lines; `share` writes percent."""

    title: str
    series: Sequence[Series]
    note: str = ""
    share: bool = False
    band: bool = False


@dataclass(frozen=True)
class Scale:
    """Where a value lies: linear or logarithmic, from `low` to `high`, on pixels `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, x: float) -> float:
        low, high, x = (math.log10(v) if self.log else v for v in (self.low, self.high, max(x, self.low) if self.log else x))
        return self.start + (self.end - self.start) * (x - low) / ((high - low) or 1)


def smoothed(values: Values, window: int) -> list[float | None]:
    """The mean of the values within half a window on both sides; None where there is none."""
    half = window // 2
    near = [[x for x in values[max(0, i - half) : i + half + 1] if x is not None] for i in range(len(values))]
    return [fmean(n) if n and v is not None else None for n, v in zip(near, values, strict=True)]


def thinned(steps: Sequence[float], values: Values, most: int = POINTS) -> tuple[list[float], list[float | None]]:
    """At most so many points: neighbours become their mean, at their last step."""
    if len(steps) <= most:
        return list(steps), list(values)
    edges = [round(i * len(steps) / most) for i in range(most + 1)]
    parts = [[x for x in values[a:b] if x is not None] for a, b in pairwise(edges)]
    return [steps[b - 1] for b in edges[1:]], [fmean(p) if p else None for p in parts]


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers from at most `low` to at least `high`."""
    raw = (high - low) / wanted
    size = 10.0 ** math.floor(math.log10(raw))
    size *= next(m for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first, last = math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9)
    return [i * size for i in range(first, last + 1)]


def _vertical(chart: Chart) -> tuple[Scale, list[float]]:
    seen = [v for s in chart.series for v in s.values if v is not None]
    least, most = min(seen), max(seen)
    dots = [(v, e) for s in chart.series if s.error for v, e in zip(s.values, s.error, strict=True) if v is not None and e]
    low, high = min([least, *(v - e for v, e in dots)]), max([most, *(v + e for v, e in dots)])
    if low > 0 and high / low > 100 and not chart.share:
        marks = [10.0**i for i in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
        return Scale(marks[0], marks[-1], HEIGHT - BOTTOM, TOP, log=True), marks[:: math.ceil(len(marks) / 5)]
    if chart.share:
        low, high = min(0.0, least), high if most > 1 else max(0.0, min(1.0, high))
    elif 0 < low < 0.5 * high:
        low = 0.0
    flat = high - low < 1e-9 * max(1.0, abs(high))
    marks = ticks(low - (abs(low) * 0.1 if flat else 0), high + ((abs(high) * 0.1 or 1.0) if flat else 0))
    return Scale(marks[0], marks[-1], HEIGHT - BOTTOM, TOP), [m for m in marks if m <= 1] if chart.share and high <= 1 else marks


def _line(points: Sequence[tuple[float, float | None]], style: str) -> str:
    said, pen = [], "M"
    for x, y in points:
        if y is not None:
            said.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L" if y is not None else "M"
    return f'<path class={style} d="{"".join(said)}"/>'


def _drawn(one: Series, x: Scale, y: Scale, colour: str) -> str:
    def placed(values: Values) -> list[tuple[float, float | None]]:
        return [(x(s), None if v is None else y(v)) for s, v in zip(one.steps, values, strict=True)]

    if one.error is None:
        soft = smoothed(one.values, len(one.values) // 12)
        return f'<g style="stroke:{colour}">{_line(placed(one.values), "raw")}{_line(placed(soft), "run")}</g>'
    marks = [f'<g style="stroke:{colour};fill:{colour}">']
    for step, value, error in zip(one.steps, one.values, one.error, strict=True):
        if value is not None:
            if error:
                ends = y(max(y.low, value - error)), y(min(y.high, value + error))
                marks.append(f'<line x1="{x(step):.1f}" x2="{x(step):.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}"/>')
            marks.append(
                f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="3.2" stroke="none"><title>step {step:g}: {value:.4g}</title></circle>'
            )
    return "".join([*marks, "</g>"])


def _axes(x: Scale, y: Scale, marks: Sequence[float], share: bool) -> str:
    out = []
    for v in marks:
        label = f"{100 * v:.3g} %" if share else number(float(f"{v:.6g}"))
        out.append(f'<line class=rule x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y(v) + 3.5:.1f}" text-anchor="end">{label}</text>')
    whole = [v for v in ticks(x.low, x.high, 5) if x.low <= v <= x.high and v == int(v)] if x.high > x.low else [x.low]
    for v in whole:
        out.append(f'<text x="{x(v):.1f}" y="{HEIGHT - 7}" text-anchor="middle">{int(v)}</text>')
    return "".join(out)


def _filled(low: Series, high: Series, x: Scale, y: Scale) -> str:
    pairs = [(x(s), y(a), y(b)) for s, a, b in zip(low.steps, low.values, high.values, strict=True) if a is not None and b is not None]
    ring = [f"{s:.1f} {a:.1f}" for s, a, _ in pairs] + [f"{s:.1f} {b:.1f}" for s, _, b in reversed(pairs)]
    return f'<path class=band style="fill:var(--c4)" d="M{"L".join(ring)}Z"/>' if pairs else ""


def drawn(chart: Chart) -> str:
    """A chart as a figure; empty when it has no finite value. The pointer reads values off; without a script the last ones stand there."""
    kept = [Series(s.label, *thinned(s.steps, s.values), paint=s.paint) if s.error is None else s for s in chart.series]
    kept = [s for s in kept if any(v is not None for v in s.values)]
    if not kept:
        return ""
    chart = Chart(chart.title, kept, chart.note, chart.share, chart.band and len(kept) > 1)
    at = sorted({s for one in kept for s in one.steps})
    x = Scale(at[0], at[-1], LEFT, WIDTH - RIGHT) if len(at) > 1 else Scale(at[0] - 1, at[0] + 1, LEFT, WIDTH - RIGHT)
    y, marks = _vertical(chart)
    say = percent if chart.share else number
    known = [dict(zip(s.steps, s.values, strict=True)) for s in kept]
    data = {"x": at, "y": [[say(k[s]) if s in k else None for s in at] for k in known], "at": [round(x(s), 1) for s in at], "from": WIDTH}
    key = "".join(f"<span style=--k:var(--c{s.paint})>{escaped(s.label)} <b>{say(_last(s.values))}</b></span>" for s in kept)
    lines = "".join(_drawn(s, x, y, f"var(--c{s.paint})") for s in kept)
    band = _filled(kept[0], kept[1], x, y) if chart.band and list(kept[0].steps) == list(kept[1].steps) else ""
    said = ", ".join(f"{s.label} at the end {say(_last(s.values))}" for s in kept)
    return (
        f'<figure class=card data-chart="{html.escape(json.dumps(data, separators=(",", ":")))}">'
        f"<figcaption>{escaped(chart.title)}<small>{escaped(chart.note)}{' (log)' if y.log else ''}</small></figcaption>"
        f"<div class=key>{key}<output></output></div>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{attribute(chart.title)}: {attribute(said)}">'
        f"{_axes(x, y, marks, chart.share)}{band}{lines}"
        f'<line class=cursor y1="{TOP}" y2="{HEIGHT - BOTTOM}" style="display:none"/></svg></figure>'
    )


def _last(values: Values) -> float | None:
    return next((v for v in reversed(values) if v is not None), None)


# -- tokens
def levels() -> str:
    """The style of each shade: n8 ... n1 below zero, p1 ... p8 above."""
    rule = ".{0}{1}{{background:color-mix(in srgb,var(--{2}) {3}%,transparent)}}"
    return "\n".join(rule.format(s, i, c, round(72 * i / LEVELS)) for s, c in (("n", "neg"), ("p", "pos")) for i in range(1, LEVELS + 1))


def token(piece: str, value: float | None, scale: float, title: str) -> str:
    """A piece of an answer on a shade that says its value, with the number in its title."""
    level = 0 if not value or not scale else max(1, min(LEVELS, math.ceil(LEVELS * abs(value) / scale)))
    shade = "" if not level else f" {'p' if (value or 0) > 0 else 'n'}{level}"
    said = "<s>␣</s>" if piece == " " else escaped(piece) if piece else "<s>∅</s>"
    named = f' title="{attribute(title)}"' if title else ""
    return f'<i class="token{shade}"{named}>{said}</i>'


def legend(scale: float) -> str:
    """What the shades mean."""
    cells = [*(f"n{i}" for i in range(LEVELS, 0, -2)), "", *(f"p{i}" for i in range(2, LEVELS + 1, 2))]
    shades = "".join(f'<i class="{c}"></i>' for c in cells)
    return f"<span class=legend>advantage −{number(scale)} <span>{shades}</span> +{number(scale)}</span>"


def judged(reward: float | None) -> str:
    """A reward as tick, cross or number."""
    if reward is None:
        return '<span class=soft title="not judged">–</span>'
    if reward in (0, 1):
        return '<span class=good title="1">✓</span>' if reward else '<span class=bad title="0">✗</span>'
    return number(reward)


# -- what the model wrote
def rollouts(rows: Sequence[dict[str, Any]]) -> str:
    """The first, a middle and the last table that was kept, tokens on shades of their advantage."""
    steps = sorted({r["step"] for r in rows})
    chosen = sorted({steps[0], steps[len(steps) // 2], steps[-1]}) if steps else []
    kept = [r for r in rows if r["step"] in chosen]
    if not kept:
        return ""
    sizes = sorted(abs(a) for r in kept for a in r.get("advantage", ()) if a is not None)
    scale = sizes[int(0.98 * (len(sizes) - 1))] if sizes else 0.0
    said = f"<p>{legend(scale)}</p>" if scale else "<p class=soft>No token has an advantage other than 0 here.</p>"
    most = max(24, TOKENS // len(kept))
    return said + "".join(_table_of(step, [r for r in kept if r["step"] == step], scale, most) for step in chosen)


def _table_of(step: int, rows: Sequence[dict[str, Any]], scale: float, most: int) -> str:
    contexts = [[r for r in rows if r["context"] == c] for c in dict.fromkeys(r["context"] for r in rows)][:CONTEXTS]
    cards = "".join(f"<div class=card>{_context(c, scale, most)}</div>" for c in contexts)
    return f"<details class=step open><summary>Step {step}</summary><div class=pair>{cards}</div></details>"


def _context(rows: Sequence[dict[str, Any]], scale: float, most: int) -> str:
    first = rows[0]
    wanted = f" <span class=soft>reference</span> <code>{cut(first['reference'], 200)}</code>" if first.get("reference") else ""
    answers = "".join(_answer(r, scale, most) for r in rows)
    return f'<div class="text prompt">{cut(first["prompt"], 1200)}</div><div>{wanted}</div>{answers}'


def _answer(row: dict[str, Any], scale: float, most: int) -> str:
    pieces, advantage, logp = row["pieces"], row.get("advantage", []), row.get("sampled_logp", [])
    out = []
    for i, piece in enumerate(pieces[:most]):
        a, p = (x[i] if i < len(x) else None for x in (advantage, logp))
        title = " ".join(f"{what} {number(x)}" for what, x in (("advantage", a), ("logp", p)) if x is not None)
        out.append(token(piece, a, scale, title))
    more = f" <s>… {len(pieces) - most} more tokens</s>" if len(pieces) > most else ""
    tests = "".join(f" <span class=tag>{escaped(n)} {''.join(judged(x) for x in v)}</span>" for n, v in row.get("items", {}).items() if v)
    stop = f"<span class=tag>{escaped(row.get('stop', '')).lower()}</span>"
    heard = judged(row["reward"]) if "reward" in row else ""
    return f"<div class=answer><div>{heard}</div><div><div class=text>{''.join(out)}{more}</div>{stop}{tests}</div></div>"


def side_by_side(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> str:
    """The same held-out contexts, answered before and after."""
    pairs = [(b, a) for b, a in zip(before, after, strict=False) if b["prompt"] == a["prompt"]]
    if not pairs:
        return ""
    lines = [[_prompt(a), _sample(b), _sample(a)] for b, a in pairs]
    right = [(_right(b), _right(a)) for b, a in pairs]
    counts = [(right.count(k), what) for k, what in KINDS.items()]
    told = ", ".join(f"{n} {what}" for n, what in counts) if any(s["reward"] is not None for s in before) else ""
    head = ("held-out problem", "before", "after")
    rest = (
        f"<details><summary>{len(lines) - SHOWN} more</summary>{table(('', '', ''), lines[SHOWN:])}</details>" if len(lines) > SHOWN else ""
    )
    return f"<h3>Before and after</h3><p class=soft>{len(pairs)} problems in their order. {told}</p>{table(head, lines[:SHOWN])}{rest}"


def _right(sample: dict[str, Any]) -> bool:
    return sample["reward"] is not None and sample["reward"] >= 1


def _prompt(sample: dict[str, Any]) -> str:
    wanted = f"<div class=soft>reference <code>{cut(sample['reference'], 120)}</code></div>" if sample.get("reference") else ""
    return f"<div class=text>{cut(sample['prompt'], 400)}</div>{wanted}"


def _sample(sample: dict[str, Any]) -> str:
    return f"{judged(sample['reward'])} <span class=text>{cut(sample['answer'], 500)}</span>"


# -- the page
def page(**slots: str) -> str:
    """The template with its slots filled, each once: what is put in is never read again."""
    template = Path(__file__).with_name("report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda m: {**slots, "levels": levels()}[m[1]], template)
