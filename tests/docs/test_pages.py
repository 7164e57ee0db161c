"""What the documentation says is true: links lead somewhere, excerpts are the code, examples run."""

import shlex
import shutil
import sys

import pytest
from pages import LINK, PAGES, ROOT, blocks, commands, every, prose

import burnish
from burnish.methods.registry import names
from burnish.models.load import EMBEDDED

SMALL = {"steps": 2, "eval_size": 16, "prompts": 2, "threads": 1}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A directory with the files that a page shows, and a model folder; trainings in it are small."""

    def prepared(page):
        for block in blocks(page):
            if block.said("file"):
                (tmp_path / block.said("file")).write_text(block.body, encoding="utf-8")
        shutil.copytree(EMBEDDED / "tiny", tmp_path / "my-model")
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path

    train = burnish.train
    monkeypatch.setattr(burnish, "train", lambda *said, **options: train(*said, **{**options, **SMALL}))
    yield prepared
    for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", None)).startswith(str(tmp_path))]:
        del sys.modules[name]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_to_files(page):
    for link in LINK.findall(prose(page)):
        if "://" not in link:
            assert (page.parent / link.partition("#")[0]).exists(), f"{page.name}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_name_no_place_of_the_machine_they_were_written_on(page):
    text = page.read_text(encoding="utf-8")
    for word in ("/home/", "/root/", "/tmp/"):
        assert word not in text


@pytest.mark.parametrize("block", [b for b in every("python") if b.said("excerpt")], ids=str)
def test_excerpts_stand_in_the_code(block):
    assert block.body in (ROOT / block.said("excerpt")).read_text(encoding="utf-8")


@pytest.mark.parametrize("block", [b for b in every("python") if b.said("same")], ids=str)
def test_whole_files_are_the_files_of_the_examples(block):
    assert block.body == (ROOT / block.said("same")).read_text(encoding="utf-8")


def test_a_method_of_ones_own_is_at_most_thirty_lines():
    assert len((ROOT / "examples" / "my_method.py").read_text().splitlines()) <= 30


@pytest.mark.parametrize("block", [b for b in every("python") if not b.words], ids=str)
def test_python_blocks_run(block, desk, capsys):
    desk(block.page)
    exec(compile(block.body, str(block), "exec"), {"__name__": "a_block"})


@pytest.mark.parametrize("block", [b for b in every("python") if b.said("file")], ids=str)
def test_files_that_are_shown_can_be_imported(block, desk):
    exec(compile(block.body, str(desk(block.page) / block.said("file")), "exec"), {"__name__": "a_file", "__file__": block.said("file")})


@pytest.mark.parametrize("block", [b for b in every("sh") if "example" not in b.words], ids=str)
def test_commands_run(block, desk):
    desk(block.page)
    for words in commands(block):
        more = smaller("run" in block.words)[words[0]] if words[0] in smaller() else []
        done = burnish_said([*words, *more])
        assert done.exit_code == 0, f"burnish {' '.join(words)}\n{done.output}\n{done.exception!r}"


@pytest.mark.parametrize("block", [b for b in every("text") if "refused" in b.words], ids=str)
def test_refusals_are_what_is_shown(block, desk):
    desk(block.page)
    command, _, shown = block.body.partition("\n")
    done = burnish_said(shlex.split(command.removeprefix("$ burnish ")))
    assert done.output == shown
    assert done.exit_code == 2


def smaller(really=True):
    """What is added to a command that works, so that it works for a second."""
    flags = [w for n, x in SMALL.items() for w in (f"--{n.replace('_', '-')}", str(x))]
    one = ["--threads", "1"]
    return {"train": flags if really else ["--dry-run"], "eval": one, "sample": one}


def burnish_said(words):
    from click.testing import CliRunner

    from burnish.cli import main

    return CliRunner().invoke(main, words)


def test_every_method_has_a_section_and_a_row():
    sections = [line.removeprefix("## ") for line in (ROOT / "docs" / "methods.md").read_text().splitlines() if line.startswith("## ")]
    assert sorted(sections) == sorted(names())
    table = [line.split("`")[1] for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert sorted(table) == sorted(names())


def test_every_dependency_has_its_reason():
    import tomllib

    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [said["project"]["dependencies"], *said["project"]["optional-dependencies"].values(), said["dependency-groups"]["dev"]]
    text = (ROOT / "docs" / "dependencies.md").read_text()
    for requirement in (r for group in groups for r in group):
        assert f"| `{requirement.partition('>')[0]}`" in text or f"`{requirement.partition('>')[0]}` |" in text, requirement


def test_the_picture_is_well_formed():
    import xml.etree.ElementTree as tree

    assert tree.parse(ROOT / "docs" / "flow.svg").getroot().tag.endswith("svg")
