"""The page of the command has every command and every option."""

import re
from pathlib import Path

import pytest

from isoform import cli

PAGE = (Path(__file__).parents[2] / "docs" / "command.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `isoform (\w+)[^`]*` \|(.*)$", PAGE, re.MULTILINE))
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_command_has_a_row():
    assert set(ROWS) == set(cli.COMMANDS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_options_of_a_command_are_those_of_the_page(name):
    command = cli.isoform_command.get_command(None, name)
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    text = ROWS[name] + SECTIONS.get(name, "")
    assert options - {"--json"} <= set(re.findall(r"--[a-z-]+", text))
    if name in SECTIONS:
        assert set(re.findall(r"^\| `(--[a-z-]+)", SECTIONS[name], re.MULTILINE)) <= options
