"""The `isoform` command. Each subcommand is loaded when it is called, and loads what it needs itself."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

import click

from isoform.derivations.guests import ColumnError
from isoform.exits import Exit
from isoform.selection import UnknownName

COMMANDS = {
    "verify": "Prove and cross-check claims; exit 0 only if all hold.",
    "check": "Hold a kernel against the laws of an operator.",
    "replay": "Run the cases of a violated law again.",
    "list": "List the claims, from the lock file.",
    "show": "Show a claim: statement, assumptions, steps, near misses.",
    "trust": "Show what a claim's verdict rests on.",
    "cite": "Print BibTeX for claims, the release and their sources.",
    "report": "Write what a run finds as a static site.",
    "new": "Write the files of a new architecture from a description.",
    "lock": "Write claims.lock, or check it.",
}
EPILOG = "Exit codes: 0 all hold; 1 violated, or not the expected verdict; 2 usage; 3 unverified; 4 isoform itself failed; 130 interrupted."


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return import_module(f"isoform.commands.{cmd_name}").command if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        import isoform

        click.echo(f"isoform {isoform.__version__}")
        ctx.exit()


@click.group(cls=_Lazy, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version and exit.")
@click.option("--traceback", "with_traceback", is_flag=True, help="If isoform itself fails, show where.")
def isoform_command(with_traceback: bool) -> None:
    """One layer, all its forms: machine-checked by computer algebra, and held against the code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stdout is None:
        return _say("there is no output to print to", Exit.FAILED)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that has no ∑ gets its escape
            stream.reconfigure(errors="backslashreplace")
    try:
        with _terminable():
            code = isoform_command.main(args=arguments, prog_name="isoform", standalone_mode=False)
        sys.stdout.flush()
        return int(code or Exit.HELD)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        return _say(_refusal(error), Exit.USAGE)
    except (UnknownName, ColumnError) as error:
        return _say(str(error), Exit.USAGE)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted", Exit.INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # rich turns the former into the latter
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _say("the output was closed before all was written", Exit.FAILED)
    except Exception as error:
        if "--traceback" in arguments:
            traceback.print_exc()
        return _say(f"isoform itself failed: {type(error).__name__}: {' '.join(str(error).split())}", Exit.FAILED)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends a command as Ctrl-C does: what was found by then is printed, and no worker stays behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _refusal(error: click.ClickException) -> str:
    """What is wrong with a call, in one line that also says where its options are listed."""
    line, context = " ".join(error.format_message().split()), getattr(error, "ctx", None)
    return f"{line.rstrip('.')} (`{context.command_path} --help` lists what there is)" if context else line


def _say(line: str, code: Exit) -> int:
    click.echo(f"isoform: {line}", err=True)
    return code
