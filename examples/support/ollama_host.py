"""Find an Ollama server and check its models, by the standard library alone: it has to answer fast."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from .errors import SetupError

DEFAULT_HOST = "127.0.0.1:11434"
PROBE_SECONDS = 1.0
DEFAULT_PORT = 11434


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaChoice:
    """An Ollama server that answered and has both models."""

    url: str
    model: str
    embed_model: str


def find_ollama(model: str, embed_model: str) -> OllamaChoice | None:
    """Look for an Ollama server: at OLLAMA_HOST, else on its default port.

    Args:
        model: Chat model that must be installed.
        embed_model: Embedding model that must be installed.

    Returns:
        The server, or None where OLLAMA_HOST is not set and nothing answers on the default port.

    Raises:
        SetupError: OLLAMA_HOST is set and nothing answers there, or a model is missing.
    """
    host = os.environ.get("OLLAMA_HOST", "").strip()
    url = base_url(host or DEFAULT_HOST)
    try:
        installed = _installed(url)
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        if not host:
            return None
        raise SetupError(
            f"no Ollama answers at {url} ({_reason(error)}): start it with 'ollama serve', correct "
            "OLLAMA_HOST, or unset it to run without a model"
        ) from error
    for name in (model, embed_model):
        if name not in installed and f"{name}:latest" not in installed:
            raise SetupError(
                f"the Ollama at {url} has no model {name}: run 'ollama pull {name}', or use --offline to do without"
            )
    return OllamaChoice(url=url, model=model, embed_model=embed_model)


def base_url(host: str) -> str:
    """Turn what OLLAMA_HOST may hold into a URL.

    Args:
        host: "host", "host:port", ":port", "[::1]:port" or a URL; a server's own bind address 0.0.0.0 means this
            machine.

    Raises:
        SetupError: The host can not be read.
    """
    bare = "://" not in host
    try:
        parts = urlsplit(f"http://{host}" if bare else host)
        port = parts.port or (DEFAULT_PORT if bare else None)
    except ValueError as error:
        raise _no_address(host) from error
    if parts.scheme not in ("http", "https"):
        raise _no_address(host)
    name = parts.hostname or "127.0.0.1"
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104 - read, not bound
    place = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{place}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _no_address(host: str) -> SetupError:
    return SetupError(f"OLLAMA_HOST={host} is no address: write host:port or http://host:port")


def _installed(url: str) -> set[str]:
    with urlopen(f"{url}/api/tags", timeout=PROBE_SECONDS) as answer:  # noqa: S310 - the user's own server
        return {str(model["name"]) for model in json.load(answer)["models"]}


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, URLError):
        return str(error.reason)
    return str(error) or type(error).__name__
