"""Formats: what is rendered and how answers are read."""

from __future__ import annotations

import pytest

from burnish.formats import FORMATS, Call

PARTS = {
    "draft": "136",
    "other": "146",
    "critique": "@2>",
    "index": 2,
    "hint": "@24",
    "goal": 7,
    "direction": "+",
    "call": "49+97",
    "result": "146",
    "said": "no@2>",
    "asked": "add4?+97",
}


@pytest.mark.parametrize(
    ("name", "prompt"),
    [
        ("answer", "<q>add49+97<a>"),
        ("redo", "<q>add49+97<a>136<redo>"),
        ("fix", "<q>add49+97<a>136<crit>@2><fix>"),
        ("choose", "<q>add49+97<a>136<b>146<judge>"),
        ("item", "<q>add49+97<a>136<item>2"),
        ("hinted", "<q>add49+97<hint>@24<a>"),
        ("direction", "<q>add49+97<a>136<dir>+<a>"),
        ("result", "<q>add49+97<tools><a><call>49+97<end><result>146<a>"),
        ("turn", "<q>add49+97<a>136<end><q>no@2><a>"),
    ],
)
def test_a_format_renders(name: str, prompt: str) -> None:
    assert FORMATS[name].render("add49+97", PARTS) == prompt


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_with_all_parts_and_names_what_is_missing(name: str) -> None:
    format = FORMATS[name]
    assert format.render("add{0}", PARTS).startswith("<q>add")
    if format.words:
        assert "add{0}" in format.ask("add{0}", PARTS)
    if format.sees:
        with pytest.raises(KeyError, match=format.sees[0]):
            format.render("add1+1", {})


@pytest.mark.parametrize(
    ("name", "said", "value"),
    [
        ("answer", " 146<end>", "146"),
        ("answer", "", ""),
        ("verdict", "y", True),
        ("verdict", "No, it is not.", False),
        ("verdict", "nope", None),
        ("verdict", "", None),
        ("verdict", "no@2>", False),
        ("score", "7", 7),
        ("score", "7/9", None),
        ("score", "17", None),
        ("score", "I say 8.", 8),
        ("score", "?", None),
        ("score", "0.5", None),
        ("choose", "b", 1),
        ("choose", "A", 0),
        ("choose", "A or B", None),
        ("choose", "c", None),
        ("items", "ynny", [True, False, False, True]),
        ("items", "yes, no", [True, False]),
        ("items", "146", None),
        ("items", "why", None),
        ("item", "n", False),
        ("first-error", "12", 12),
        ("first-error", "ok", 0),
        ("first-error", "-", None),
        ("critique", "@2>", "@2>"),
        ("critique", "", None),
        ("tools", "<call>1+8<end>", Call("1+8")),
        ("tools", "146", "146"),
        ("result", "<call>9*6", Call("9*6")),
    ],
)
def test_an_answer_is_read(name: str, said: str, value: object) -> None:
    assert FORMATS[name].read(said) == value
