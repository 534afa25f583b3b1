/**
 * Every method of the wire with its types: the TypeScript mirror of `bridge-protocol/src/methods`. PROTOCOL.md says
 * what the members mean. `tests/wire` holds examples that the Rust, Python and TypeScript suites all check.
 */

import type * as action from './action';
import type * as bridge from './bridge';
import type * as cell from './cell';
import type * as file from './file';
import type * as page from './page';
import type * as runtime from './runtime';
import type * as shell from './shell';
import type * as vscode from './vscode';
import type { Empty } from './empty';

export type { action, bridge, cell, file, page, runtime, shell, vscode, Empty };

/** Parameters and result of a method, and what it streams before the result. */
interface Types<Params, Result, Progress = never> {
  readonly params: Params;
  readonly result: Result;
  readonly progress: Progress;
}

/** All methods by name. */
export interface Methods {
  readonly 'vscode/chat': Types<vscode.ChatParams, vscode.ChatResult, vscode.TextProgress>;
  readonly 'vscode/showMessage': Types<vscode.ShowMessageParams, vscode.ShowMessageResult>;
  readonly 'vscode/executeCommand': Types<vscode.ExecuteCommandParams, vscode.ExecuteCommandResult>;
  readonly 'vscode/getChatHistory': Types<vscode.ChatHistoryParams, vscode.ChatHistoryResult>;
  readonly 'bridge/hello': Types<bridge.HelloParams, bridge.HelloResult>;
  readonly 'bridge/ping': Types<Empty, Empty>;
  readonly 'bridge/shutdown': Types<Empty, Empty>;
  readonly 'bridge/tail': Types<Empty, Empty>;
  readonly 'bridge/createToken': Types<bridge.CreateTokenParams, bridge.CreateTokenResult>;
  readonly 'bridge/status': Types<Empty, bridge.StatusResult>;
  readonly 'runtime/register': Types<runtime.RegisterParams, runtime.RuntimeRef>;
  readonly 'runtime/update': Types<runtime.UpdateParams, Empty>;
  readonly 'runtime/unregister': Types<Empty, Empty>;
  readonly 'runtime/list': Types<Empty, readonly runtime.RuntimeInfo[]>;
  readonly 'runtime/get': Types<runtime.RuntimeRef, runtime.RuntimeInfo>;
  readonly 'shell/create': Types<shell.CreateParams, shell.ShellInfo>;
  readonly 'shell/list': Types<Empty, shell.ListResult>;
  readonly 'shell/run': Types<shell.RunParams, shell.CommandState, shell.OutputProgress>;
  readonly 'shell/wait': Types<shell.WaitParams, shell.CommandState, shell.OutputProgress>;
  readonly 'shell/read': Types<shell.ReadParams, shell.ReadResult>;
  readonly 'shell/input': Types<shell.InputParams, Empty>;
  readonly 'shell/keys': Types<shell.KeysParams, Empty>;
  readonly 'shell/signal': Types<shell.SignalParams, Empty>;
  readonly 'shell/resize': Types<shell.ResizeParams, Empty>;
  readonly 'shell/close': Types<shell.ShellRef, Empty>;
  readonly 'shell/attach': Types<shell.AttachParams, shell.AttachResult>;
  readonly 'file/read': Types<file.ReadParams, file.ReadResult>;
  readonly 'file/write': Types<file.WriteParams, file.WriteResult>;
  readonly 'file/edit': Types<file.EditParams, file.EditResult>;
  readonly 'file/undo': Types<file.UndoParams, file.EditResult>;
  readonly 'file/list': Types<file.ListParams, file.ListResult>;
  readonly 'file/glob': Types<file.SearchParams, file.GlobResult>;
  readonly 'file/grep': Types<file.GrepParams, file.GrepResult>;
  readonly 'file/stat': Types<file.StatParams, file.StatResult>;
  readonly 'file/hash': Types<file.PathParams, file.HashResult>;
  readonly 'file/makeDirectory': Types<file.MakeDirectoryParams, Empty>;
  readonly 'file/removeDirectory': Types<file.PathParams, Empty>;
  readonly 'file/remove': Types<file.RemoveParams, Empty>;
  readonly 'file/move': Types<file.TransferParams, Empty>;
  readonly 'file/copy': Types<file.TransferParams, file.CopyResult>;
  readonly 'cell/run': Types<cell.RunParams, cell.RunResult, vscode.TextProgress>;
  readonly 'cell/restart': Types<shell.ShellRef, Empty>;
  readonly 'page/browse': Types<page.BrowseParams, page.BrowseResult>;
  readonly 'action/execute': Types<action.ExecuteParams, action.Observation, action.OutputPiece>;
  readonly 'action/cancel': Types<action.CancelParams, Empty>;
}

/** The parameters of all notifications by name. */
export interface Notifications {
  readonly '$/cancelRequest': bridge.CancelParams;
  readonly '$/progress': bridge.ProgressParams;
  readonly 'bridge/request': bridge.RequestRecord;
}
