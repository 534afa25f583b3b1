"""Talk to VS Code from a running program.

>>> import vscode_bridge  # doctest: +SKIP
>>> vscode_bridge.show_message("Hello from Python")  # doctest: +SKIP
>>> print(vscode_bridge.chat("What is 2+2?"))  # doctest: +SKIP

The functions need a bridge: start the program with ``bridge-daemon run -- python3 ...``, run it
from VS Code, or debug it there. Without one they raise ``BridgeUnavailable``, a ``RuntimeError``.

Importing this package loads nothing else; each name is loaded when it is first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._api import chat as chat
    from ._api import chat_async as chat_async
    from ._api import execute_command as execute_command
    from ._api import get_chat_history as get_chat_history
    from ._api import is_available as is_available
    from ._api import show_message as show_message
    from ._async_client import AsyncChatStream as AsyncChatStream
    from ._async_client import AsyncClient as AsyncClient
    from ._async_result import AsyncResult as AsyncResult
    from ._client import ChatStream as ChatStream
    from ._client import Client as Client
    from ._debug import DebugBridge as DebugBridge
    from ._debug import install_debug_bridge as install_debug_bridge
    from ._debug import uninstall_debug_bridge as uninstall_debug_bridge
    from ._endpoint import Endpoint as Endpoint
    from ._exceptions import BridgeBusy as BridgeBusy
    from ._exceptions import BridgeCancelled as BridgeCancelled
    from ._exceptions import BridgeError as BridgeError
    from ._exceptions import BridgeTimeout as BridgeTimeout
    from ._exceptions import BridgeUnavailable as BridgeUnavailable
    from ._exceptions import Conflict as Conflict
    from ._exceptions import ConnectionLost as ConnectionLost
    from ._exceptions import HostGone as HostGone
    from ._exceptions import HostUnavailable as HostUnavailable
    from ._exceptions import RequestFailed as RequestFailed
    from ._exceptions import RequestRefused as RequestRefused
    from ._protocol import Conversation as Conversation

__version__ = "0.1.0"

_MODULES = {
    "_api": (
        "chat",
        "chat_async",
        "execute_command",
        "get_chat_history",
        "is_available",
        "show_message",
    ),
    "_async_client": ("AsyncChatStream", "AsyncClient"),
    "_async_result": ("AsyncResult",),
    "_client": ("ChatStream", "Client"),
    "_debug": ("DebugBridge", "install_debug_bridge", "uninstall_debug_bridge"),
    "_endpoint": ("Endpoint",),
    "_exceptions": (
        "BridgeBusy",
        "BridgeCancelled",
        "BridgeError",
        "BridgeTimeout",
        "BridgeUnavailable",
        "Conflict",
        "ConnectionLost",
        "HostGone",
        "HostUnavailable",
        "RequestFailed",
        "RequestRefused",
    ),
    "_protocol": ("Conversation",),
}
_ORIGIN = {name: (module, name) for module, names in _MODULES.items() for name in names}

__all__ = sorted(_ORIGIN)  # noqa: PLE0605

# Names under which debug adapters written for the original module install their bridge.
_ORIGIN["VSCodeBridge"] = ("_debug", "DebugBridge")
_ORIGIN["_set_bridge"] = ("_debug", "set_bridge")


if not TYPE_CHECKING:  # or a type checker would accept every name

    def __getattr__(name):
        if name not in _ORIGIN:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        module, attribute = _ORIGIN[name]
        value = getattr(import_module(f".{module}", __name__), attribute)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
