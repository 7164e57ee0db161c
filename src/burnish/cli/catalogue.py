"""burnish list, burnish show: what there is, and how it works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .text import as_json, columns, heading, plain

if TYPE_CHECKING:
    from ..methods.base import Method
    from ..parts import Part

TITLES = {
    "run": "Run",
    "learner": "Learner",
    "method": "Method",
    "slot": "Slots of parts",
    "part": "Options of the parts in them",
    "role": "Roles: other models, built when some part asks for them",
    "memory": "Memories",
}


@click.command("list")
@click.option("--family", metavar="NAME", help="Only this family.")
@click.option("--feedback", metavar="NAME", help="Only methods that learn from this: reward, demonstration.")
@click.option("--kind", metavar="NAME", help="method (trains) or decoding (answers better from the same weights).")
@click.option("--parts", is_flag=True, help="Every slot with the parts that can stand in it.")
@click.option("--json", "json_", is_flag=True, help="A JSON list for scripts.")
def list_command(family: str | None, feedback: str | None, kind: str | None, parts: bool, json_: bool) -> None:
    """What there is: methods, or parts with --parts."""
    if parts:
        if family or feedback or kind:
            raise click.UsageError("--parts lists parts; --family, --feedback and --kind choose methods")
        _list_parts(json_)
        return
    from .describe import described, every_method, first_sentence

    found = [described(cls, options=json_) for cls in every_method().values()]
    for flag, asked, said in (("family", family, "family"), ("feedback", feedback, "needs"), ("kind", kind, "kind")):
        found = _chosen(found, flag, asked, said)
    if json_:
        click.echo(as_json(found))
        return
    rows = [[m["name"], m["family"], m["parent"] or "–", ", ".join(m["needs"]), m["paper"], first_sentence(m["doc"])] for m in found]
    click.echo(columns([["name", "family", "parent", "needs", "paper", "what it is"], *rows], head=True))


def _chosen(found: list[dict[str, Any]], flag: str, asked: str | None, key: str) -> list[dict[str, Any]]:
    """Those of a family, feedback or kind. Raises UsageError with the nearest where there is none such at all."""
    if asked is None:
        return found
    from ..errors import nearest
    from .describe import described, every_method

    def of(one: dict[str, Any]) -> list[str]:
        return one[key] if isinstance(one[key], list) else [one[key]]

    known = {x for cls in every_method().values() for x in of(described(cls, options=False))}
    if asked not in known:
        raise click.UsageError(f"--{flag} {asked!r}: no method has that; {nearest(asked, known)}")
    return [m for m in found if asked in of(m)]


def _list_parts(json_: bool) -> None:
    from ..methods.fields import choices
    from ..parts import SLOTS, find
    from .describe import described_part

    if json_:
        click.echo(as_json([described_part(slot, find(SLOTS[slot], n)) for slot in SLOTS for n in choices(slot)]))
        return
    for slot in SLOTS:
        click.echo(heading(f"--{slot.replace('_', '-')}"))
        rows = [[n, find(SLOTS[slot], n).signature.summary] for n in choices(slot)]
        click.echo(columns(rows, indent="  ") + "\n")


@click.command("show")
@click.argument("name")
@click.option("--json", "json_", is_flag=True, help="One JSON object for scripts.")
@click.option("--source", is_flag=True, help="The source alone.")
def show_command(name: str, json_: bool, source: bool) -> None:
    """How a method or part works: what it is, its options, and its source.

    NAME is a method, a part, or my_file.py:MyMethod."""
    from .describe import described, described_part, meant

    found = meant(name)
    if isinstance(found, list):
        if json_:
            click.echo(as_json({**described_part(*found[0]), **({"source": found[0][1].signature.source} if source else {})}))
        for slot, part in () if json_ else found:
            click.echo(part.signature.source if source else _part_page(slot, part))
        return
    if json_:
        click.echo(as_json({**described(found), **({"source": "\n\n\n".join(_sources(found))} if source else {})}))
        return
    page = [] if source else [_page(found)]
    click.echo("\n\n\n".join([*page, *_sources(found)]))


def _page(cls: type[Method]) -> str:
    """What a method is and what can be set."""
    from .describe import described

    said = described(cls)
    facts = [
        ["parent", said["parent"] or "–"],
        ["family", said["family"]],
        ["paper", said["paper"] or "–"],
        ["needs", ", ".join(said["needs"])],
        ["builds", ", ".join(f"{n} ({w})" for n, w in said["roles"].items()) or "the policy alone"],
        ["claim", said["claim"]["state"]],
    ]
    return f"{heading(said['name'])}\n\n{said['doc']}\n\n{columns(facts)}\n\n{options_text(said['options'])}"


def options_text(options: list[dict[str, Any]]) -> str:
    """Options by group, with type, default and help."""
    blocks = []
    for group, title in TITLES.items():
        rows = [[f"--{o['name'].replace('_', '-')}", o["type"], plain(o["default"]), _help(o)] for o in options if o["group"] == group]
        if rows:
            head = [["option", "type", "default", ""], *rows]
            blocks.append(f"{heading(title)}\n{columns(head if group == 'run' else rows, indent='  ')}")
    return "\n\n".join(blocks)


def _help(option: dict[str, Any]) -> str:
    if option["group"] != "slot":
        return str(option["help"])
    from ..methods.fields import choices

    return f"{option['help']}: {', '.join(choices(option['name']))}"


def _part_page(slot: str, part: Part) -> str:
    from .describe import described_part, slots_of

    said = described_part(slot, part)
    slots = slots_of(part.name) or ("keep, credit, objective or any other slot",)
    facts = [["stands in", ", ".join(f"--{s.replace('_', '-')}" for s in slots)], ["reads", ", ".join(said["needs"])]]
    rows = [[f"--{slot.replace('_', '-')}.{o['name']}", o["type"], plain(o["default"]), o["help"]] for o in said["options"]]
    options = f"\n\n{heading('Options')}\n{columns(rows, indent='  ')}" if rows else ""
    return f"{heading(part.name)}\n\n{said['doc']}\n\n{columns(facts)}{options}\n\n{part.signature.source}\n"


def _sources(cls: type[Method]) -> list[str]:
    """The method's class, then the bodies of its parts in the order in which they are called."""
    from ..methods.fields import settings
    from .describe import IN_ORDER, described, method_source, parts_in

    values, used = settings(cls, {}), described(cls, options=False)["parts"]
    parts = [(s, p) for s in IN_ORDER if s in used for p in parts_in(values.get(s)) if p.weight]
    return [method_source(cls), *(f"# {slot}: {part}\n{part.signature.source}" for slot, part in parts)]
