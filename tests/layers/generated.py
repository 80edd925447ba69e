"""Generated source as a module, edited or not."""

from types import ModuleType

from isoform.derivations.layer.torch_code import torch_code
from isoform.properties.crosscheck import forms_of
from isoform.properties.declared import operator_of
from isoform.properties.laws import laws

LAWS = {law.name: law for law in laws()}
SHORT = [law for law in laws() if law.name != "long-sequence"]


def source(example, *edits):
    """The source of an example, in which each edit (old, new) changes something."""
    text = torch_code(example.declaration, **example.call)
    for old, new in edits:
        assert old in text, text
        text = text.replace(old, new)
    return text


def module(text):
    """Run a source."""
    found = ModuleType("generated")
    exec(compile(text, "generated", "exec"), found.__dict__)
    return found


def forms(example, *edits):
    """The forms of an example, the first with its step."""
    found, name = module(source(example, *edits)), example.declaration.operator
    return forms_of(found.FORMS[name], found.STEPS[name])


def operator(example):
    """The operator of an example."""
    return operator_of(example.declaration, **example.call)
