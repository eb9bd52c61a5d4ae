"""An example as a command: its exit code, and one line instead of a traceback."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable

from .errors import SetupError
from .printing import say


def start(name: str, job: Callable[[], None]) -> int:
    """Do what an example is for that takes no arguments: the docstring of its module answers ``--help``.

    Args:
        name: Stands in front of an error.
        job: Prints its own output; a function of the module.

    Returns:
        What `run` returns.

    Raises:
        SystemExit: Help was asked for (0), or an argument was given (2).
    """
    about = sys.modules[job.__module__].__doc__
    argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    return run(name, job)


def run(name: str, job: Callable[[], None]) -> int:
    """Do what a command is for.

    Args:
        name: Stands in front of an error.
        job: Prints its own output.

    Returns:
        0, also when the reader of the output has gone; 2 when something has to be set up first; 130 after Ctrl-C.
    """
    # wordllama would set the level to INFO, and the log of every HTTP request would follow.
    logging.basicConfig(level=logging.WARNING)
    try:
        job()
        sys.stdout.flush()
    except SetupError as error:
        say(f"{name}: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    except ModuleNotFoundError as error:
        say(f"{name}: {error.name} is missing: pip install 'llama-index-grounded[demo]'")
        return 2
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python would flush once more on its way out, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
