"""An example as a command: its exit code, and one line instead of a traceback."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

from .errors import SetupError
from .printing import say


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
