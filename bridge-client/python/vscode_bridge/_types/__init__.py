"""The types of parameters, results and progress of every method on the wire.

The Python mirror of ``bridge-protocol/src/methods``, one file for each family. PROTOCOL.md says
what the members mean; ``tests/wire`` has examples that the Rust, Python and TypeScript suites all
check. A class whose name begins with ``_Needs`` has the members that are always present.
"""

from __future__ import annotations

from typing import Any, Dict, List

from . import action, bridge, cell, editor, file, shell
from .empty import Empty

METHODS: Dict[str, Any] = {
    "vscode/chat": (editor.ChatParams, editor.ChatResult),
    "vscode/showMessage": (editor.ShowMessageParams, editor.ShowMessageResult),
    "vscode/executeCommand": (editor.ExecuteCommandParams, editor.ExecuteCommandResult),
    "vscode/getChatHistory": (editor.GetChatHistoryParams, editor.GetChatHistoryResult),
    "bridge/hello": (bridge.HelloParams, bridge.HelloResult),
    "bridge/ping": (Empty, Empty),
    "bridge/shutdown": (Empty, Empty),
    "bridge/tail": (Empty, Empty),
    "bridge/createToken": (bridge.CreateTokenParams, bridge.CreateTokenResult),
    "bridge/status": (Empty, bridge.StatusResult),
    "runtime/register": (bridge.RegisterParams, bridge.RuntimeRef),
    "runtime/update": (bridge.UpdateParams, Empty),
    "runtime/unregister": (Empty, Empty),
    "runtime/list": (Empty, List[bridge.RuntimeInfo]),
    "runtime/get": (bridge.RuntimeRef, bridge.RuntimeInfo),
    "shell/create": (shell.CreateShellParams, shell.ShellInfo),
    "shell/list": (Empty, shell.ListShellsResult),
    "shell/run": (shell.RunCommandParams, shell.CommandState),
    "shell/wait": (shell.WaitParams, shell.CommandState),
    "shell/read": (shell.ReadOutputParams, shell.ReadOutputResult),
    "shell/input": (shell.InputParams, Empty),
    "shell/keys": (shell.KeysParams, Empty),
    "shell/signal": (shell.SignalParams, Empty),
    "shell/resize": (shell.ResizeParams, Empty),
    "shell/close": (shell.ShellRef, Empty),
    "shell/attach": (shell.AttachParams, shell.AttachResult),
    "file/read": (file.ReadFileParams, file.ReadFileResult),
    "file/write": (file.WriteFileParams, file.WriteFileResult),
    "file/edit": (file.EditFileParams, file.EditFileResult),
    "file/undo": (file.UndoParams, file.EditFileResult),
    "file/list": (file.ListFilesParams, file.ListFilesResult),
    "file/glob": (file.GlobParams, file.GlobResult),
    "file/grep": (file.GrepParams, file.GrepResult),
    "file/stat": (file.StatParams, file.StatResult),
    "file/hash": (file.PathParams, file.HashResult),
    "file/makeDirectory": (file.MakeDirectoryParams, Empty),
    "file/removeDirectory": (file.PathParams, Empty),
    "file/remove": (file.RemoveParams, Empty),
    "file/move": (file.TransferParams, Empty),
    "file/copy": (file.TransferParams, file.CopyResult),
    "cell/run": (cell.RunCellParams, cell.RunCellResult),
    "cell/restart": (shell.ShellRef, Empty),
    "page/browse": (cell.BrowseParams, cell.BrowseResult),
    "action/execute": (action.ExecuteActionParams, action.ObservationResult),
    "action/cancel": (action.CancelActionParams, Empty),
}
"""The types of the parameters and of the result, by method."""

PROGRESS: Dict[str, Any] = {
    "vscode/chat": editor.TextProgress,
    "shell/run": shell.OutputProgress,
    "shell/wait": shell.OutputProgress,
    "cell/run": editor.TextProgress,
    "action/execute": action.OutputPiece,
}
"""The type of the values that a method streams."""

NOTIFICATIONS: Dict[str, Any] = {
    "$/cancelRequest": bridge.CancelParams,
    "$/progress": bridge.ProgressParams,
    "bridge/request": bridge.RequestRecord,
}
"""The type of the parameters, by notification."""
