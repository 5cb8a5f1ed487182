"""The help of commands: examples that can be run, and defaults that are true."""

import re
import shlex

import pytest
from cli_files import call

import mercer
from mercer.cli.app import COMMANDS, app
from mercer.cli.grids import PARAMETERS, parse_grid

NAMES = [command.__name__ for command in COMMANDS]


def parameters(name):
    """Return the options of a command by their longest names."""
    from typer.main import get_command

    command = get_command(app).commands[name]
    return {max(p.opts, key=len): p for p in command.params}


@pytest.mark.parametrize("name", NAMES)
def test_examples_name_options_that_exist(name):
    text = next(c for c in COMMANDS if c.__name__ == name).__doc__
    examples = re.findall(rf"mercer {name}[^\n]*", text)
    assert "For example:" in text
    assert examples
    known = parameters(name)
    for example in examples:
        for word in shlex.split(example):
            if word.startswith("--"):
                assert word in known, example


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_help_and_a_default(name):
    for option, parameter in parameters(name).items():
        assert parameter.help, option
        # Flags are off; others print their value, or say what happens without them.
        if parameter.default is None and not parameter.required:
            says = ("Default: ", "ithout", "default is", "Usual ranges", "of --search")
            assert any(word in parameter.help for word in says), option


@pytest.mark.parametrize(
    ("option", "machine"),
    [
        ("--C", "SVC"),
        ("--degree", "SVC"),
        ("--coef0", "SVC"),
        ("--gamma", "SVC"),
        ("--nu", "NuSVC"),
        ("--nu", "NuSVR"),
        ("--nu", "OneClassSVM"),
        ("--epsilon", "SVR"),
        ("--epsilon", "MKLRegressor"),
        ("--multiclass", "SVC"),
        ("--tol", "SVC"),
    ],
)
def test_defaults_are_those_of_the_machines(option, machine):
    said = re.search(r"Default: (.*?)(;|\.$|\. |$)", parameters("fit")[option].help)[1]
    default = getattr(mercer, machine)().get_params()[option[2:]]
    assert said == (default if isinstance(default, str) else f"{default:g}")


def test_usual_ranges_are_those_of_the_search():
    text = parameters("fit")["--search"].help
    said = text[text.index("Usual ranges: ") + 14 :].rstrip(".")
    ranges = said.split(", ")
    assert len(ranges) == len(PARAMETERS)
    for name, text in zip(PARAMETERS, ranges, strict=True):
        assert parse_grid(text) == parse_grid(name)


def test_all_commands_are_listed():
    text = call("--help").stdout
    assert all(name in text for name in NAMES)
