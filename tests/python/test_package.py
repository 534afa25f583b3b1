"""The package: its names, its signatures, and the cost of importing it."""

from __future__ import annotations

import inspect
import sys

import pytest

import vscode_bridge

from bridge import ROOT, clean_environment, run

PUBLIC = [
    "AsyncChatStream",
    "AsyncClient",
    "AsyncResult",
    "BridgeBusy",
    "BridgeCancelled",
    "BridgeError",
    "BridgeTimeout",
    "BridgeUnavailable",
    "ChatStream",
    "Client",
    "Conflict",
    "ConnectionLost",
    "Conversation",
    "DebugBridge",
    "Endpoint",
    "HostGone",
    "HostUnavailable",
    "RequestFailed",
    "RequestRefused",
    "chat",
    "chat_async",
    "execute_command",
    "get_chat_history",
    "install_debug_bridge",
    "is_available",
    "show_message",
    "uninstall_debug_bridge",
]


def test_public_names() -> None:
    assert vscode_bridge.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(vscode_bridge))
    for name in PUBLIC:
        assert getattr(vscode_bridge, name).__doc__, f"{name} has no docstring"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'chatt'"):
        vscode_bridge.chatt  # type: ignore[attr-defined] # noqa: B018
    assert not hasattr(vscode_bridge, "_bridge")


def test_every_exception_is_a_bridge_error() -> None:
    for name in PUBLIC:
        value = getattr(vscode_bridge, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, vscode_bridge.BridgeError)
            assert issubclass(value, RuntimeError)


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("chat", "(message, timeout)"),
        ("chat_async", "(message, timeout)"),
        ("execute_command", "(command, *args, timeout)"),
        ("get_chat_history", "(conversation_id, limit)"),
        ("show_message", "(message, level)"),
        ("is_available", "()"),
    ],
)
def test_signatures_begin_like_the_originals(name: str, original: str) -> None:
    parameters = inspect.signature(getattr(vscode_bridge, name)).parameters.values()
    bare = [p.replace(annotation=p.empty, default=p.empty) for p in parameters]
    known = [p for p in bare if p.name in original]
    assert str(inspect.Signature(known)) == original
    # New parameters are keyword-only, so calls written for the original module mean the same.
    assert all(p.kind is p.KEYWORD_ONLY for p in bare if p.name not in original)


def test_defaults_are_the_originals() -> None:
    def default(function: object, name: str) -> object:
        return inspect.signature(function).parameters[name].default  # type: ignore[arg-type]

    assert default(vscode_bridge.chat, "timeout") == 30
    assert default(vscode_bridge.chat_async, "timeout") == 30
    assert default(vscode_bridge.execute_command, "timeout") == 10
    assert default(vscode_bridge.get_chat_history, "limit") == 10
    assert default(vscode_bridge.show_message, "level") == "info"


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import vscode_bridge", "json typing threading asyncio websockets ssl yaml"),
        ("import vscode_bridge; vscode_bridge.is_available()", "asyncio websockets ssl yaml"),
        ("from vscode_bridge import chat, BridgeError", "asyncio websockets ssl yaml"),
        ("from vscode_bridge import agent, tools", "asyncio websockets ssl yaml"),
    ],
)
def test_importing_loads_nothing_heavy(statement: str, absent: str) -> None:
    # -S: modules that `site` and its .pth files load do not count.
    path = [entry for entry in sys.path if entry]
    code = f"import sys; sys.path[:0] = {path!r}; {statement}; print(*sys.modules)"
    done = run([sys.executable, "-S", "-c", code], clean_environment())
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & set(absent.split()) == set()


def test_the_license_is_that_of_the_repository() -> None:
    copy = ROOT / "bridge-client" / "python" / "LICENSE"
    assert copy.read_text(encoding="utf-8") == (ROOT / "LICENSE").read_text(encoding="utf-8")
