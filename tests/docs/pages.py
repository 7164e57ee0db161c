"""The documentation as data: its pages, their fenced blocks and their links.

A fence says what is done with it: ```python is run; ```python excerpt=PATH must stand in that file; ```LANGUAGE file=NAME is written to
the directory in which the page's other blocks run; ```sh is run with --dry-run, ```sh run for real, ```sh example not at all;
```text refused is a command and exactly what is said to it."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    body: str

    def said(self, name: str) -> str:
        return next((w.partition("=")[2] for w in self.words if w.startswith(f"{name}=")), "")

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [Block(page, text[: m.start()].count("\n") + 1, m[1], tuple(m[2].split()), m[3]) for m in found]


def every(language: str) -> list[Block]:
    return [b for page in PAGES for b in blocks(page) if b.language == language]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def commands(block: Block) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in block.body.splitlines() if line.startswith("burnish ")]
