/** A check for each method of the wire. The compiler holds the checks to the types of `src/bridge/methods`. */

import type {
  action,
  bridge,
  cell,
  Empty,
  file,
  Methods,
  Notifications,
  page,
  runtime,
  shell,
  vscode,
} from '../../src/bridge/methods/index';
import {
  anyOf,
  anything,
  flag,
  list,
  nullable,
  number,
  object,
  optional,
  record,
  text,
  word,
  type Check,
} from './check';

const empty = object<Empty>({});

const vscodeChatParams = object<vscode.ChatParams>({
  message: text,
  timeout: optional(number),
  model: optional(text),
  conversationId: optional(text),
});

const vscodeChatResult = object<vscode.ChatResult>({
  response: text,
  conversationId: optional(text),
  blocked: optional(flag),
  blockedReason: optional(text),
  openedChat: optional(flag),
});

const vscodeTextProgress = object<vscode.TextProgress>({
  text: text,
});

const vscodeShowMessageParams = object<vscode.ShowMessageParams>({
  message: text,
  level: optional(word('info', 'warning', 'error')),
  buttons: optional(list(text)),
  timeout: optional(number),
});

const vscodeShowMessageResult = object<vscode.ShowMessageResult>({
  choice: optional(text),
});

const vscodeExecuteCommandParams = object<vscode.ExecuteCommandParams>({
  command: text,
  args: optional(list(anything)),
  timeout: optional(number),
});

const vscodeExecuteCommandResult = object<vscode.ExecuteCommandResult>({
  result: optional(anything),
});

const vscodeChatHistoryParams = object<vscode.ChatHistoryParams>({
  conversationId: text,
  limit: optional(number),
});

const vscodeChatHistoryMessage = object<vscode.ChatHistoryMessage>({
  role: word('user', 'assistant'),
  content: text,
  timestamp: number,
});

const vscodeChatHistoryResult = object<vscode.ChatHistoryResult>({
  messages: list(vscodeChatHistoryMessage),
});

const runtimeRegisterParams = object<runtime.RegisterParams>({
  methods: list(text),
  runtimeId: optional(text),
  title: optional(text),
  workspaceFolders: optional(list(text)),
  focused: optional(flag),
  edge: optional(flag),
});

const runtimeRuntimeRef = object<runtime.RuntimeRef>({
  runtimeId: text,
});

const runtimeUpdateParams = object<runtime.UpdateParams>({
  title: optional(text),
  workspaceFolders: optional(list(text)),
  methods: optional(list(text)),
  focused: optional(flag),
});

const runtimeRuntimeInfo = object<runtime.RuntimeInfo>({
  runtimeId: text,
  title: text,
  workspaceFolders: list(text),
  methods: list(text),
  focused: flag,
  inFlight: number,
  edge: optional(flag),
});

const bridgeRight: Check<bridge.Right> = word('chat', 'read', 'write', 'run', 'editor');

const bridgeHelloParams = object<bridge.HelloParams>({
  protocol: number,
  name: optional(text),
  runtimeId: optional(text),
  path: optional(text),
});

const bridgeHelloResult = object<bridge.HelloResult>({
  protocol: number,
  version: text,
  session: text,
  role: word('client', 'host'),
  rights: optional(list(bridgeRight)),
});

const bridgeCreateClientTokenParams = object<bridge.CreateClientTokenParams>({
  role: word('client'),
  rights: list(bridgeRight),
});

const bridgeCreateHostTokenParams = object<bridge.CreateHostTokenParams>({
  role: word('host'),
  runtimeIds: list(text),
  tools: list(text),
});

const bridgeCreateTokenParams: Check<bridge.CreateTokenParams> = anyOf(
  bridgeCreateClientTokenParams,
  bridgeCreateHostTokenParams,
);

const bridgeCreateTokenResult = object<bridge.CreateTokenResult>({
  token: text,
});

const bridgeStatusResult = object<bridge.StatusResult>({
  version: text,
  session: text,
  pid: number,
  uptime: number,
  clients: number,
  runtimes: list(runtimeRuntimeInfo),
  inFlight: number,
  queuedBytes: number,
  operations: number,
  counters: record(number),
});

const bridgeRequestRecord = object<bridge.RequestRecord>({
  request: number,
  client: number,
  method: text,
  outcome: text,
  waitMs: number,
  hostMs: number,
  requestBytes: number,
  responseBytes: number,
  clientName: optional(text),
  runtimeId: optional(text),
});

const bridgeCancelParams = object<bridge.CancelParams>({
  id: anyOf(number, text),
  reason: optional(text),
});

const bridgeProgressParams = object<bridge.ProgressParams>({
  id: anyOf(number, text),
  value: anything,
});

const shellShellRef = object<shell.ShellRef>({
  shell: optional(text),
});

const shellCreateParams = object<shell.CreateParams>({
  shell: optional(text),
  reuse: optional(flag),
  cwd: optional(text),
  environment: optional(record(text)),
  columns: optional(number),
  rows: optional(number),
});

const shellShellInfo = object<shell.ShellInfo>({
  shell: text,
  state: word('starting', 'idle', 'running', 'closed'),
  cwd: text,
  pid: number,
  columns: number,
  rows: number,
  restarts: number,
  logEnd: number,
  command: optional(number),
});

const shellListResult = object<shell.ListResult>({
  shells: list(shellShellInfo),
});

const shellRunParams = object<shell.RunParams>({
  quietMs: optional(number),
  limitMs: optional(number),
  returnOnInput: optional(flag),
  stream: optional(flag),
  outputBytes: optional(number),
  outputLines: optional(number),
  colours: optional(flag),
  command: text,
  shell: optional(text),
  create: optional(flag),
});

const shellWaitParams = object<shell.WaitParams>({
  quietMs: optional(number),
  limitMs: optional(number),
  returnOnInput: optional(flag),
  stream: optional(flag),
  outputBytes: optional(number),
  outputLines: optional(number),
  colours: optional(flag),
  from: optional(number),
  shell: optional(text),
  command: optional(number),
});

const shellOutputProgress = object<shell.OutputProgress>({
  offset: number,
  base64: text,
});

const shellSpan = object<shell.Span>({
  start: number,
  end: number,
});

const shellCommandOutput = object<shell.CommandOutput>({
  text: text,
  start: number,
  end: number,
  omitted: optional(shellSpan),
  lastLines: optional(number),
  lost: optional(number),
});

const shellRunning = object<shell.RunningCommand>({
  shell: text,
  command: number,
  state: word('running', 'waitingForInput'),
  output: shellCommandOutput,
  why: word('quiet', 'limit', 'input'),
  input: optional(word('line', 'hidden', 'keys')),
});

const shellFinished = object<shell.FinishedCommand>({
  shell: text,
  command: number,
  state: word('finished'),
  output: shellCommandOutput,
  ended: word('atPrompt', 'shellExited', 'shellClosed', 'serverGone'),
  cwd: text,
  durationMs: number,
  user: text,
  machine: text,
  exitCode: optional(number),
  backgroundPid: optional(number),
  python: optional(text),
});

const shellCommandState: Check<shell.CommandState> = anyOf(shellRunning, shellFinished);

const shellReadParams = object<shell.ReadParams>({
  from: optional(number),
  shell: optional(text),
  bytes: optional(number),
  lines: optional(number),
  raw: optional(flag),
  colours: optional(flag),
});

const shellReadResult = object<shell.ReadResult>({
  start: number,
  end: number,
  logEnd: number,
  more: flag,
  text: optional(text),
  base64: optional(text),
  lastLines: optional(number),
});

const shellInputParams = object<shell.InputParams>({
  text: text,
  shell: optional(text),
  enter: optional(flag),
});

const shellKeysParams = object<shell.KeysParams>({
  keys: list(text),
  shell: optional(text),
});

const shellSignalParams = object<shell.SignalParams>({
  signal: word('INT', 'TERM', 'KILL', 'QUIT', 'HUP', 'CONT', 'STOP', 'USR1', 'USR2'),
  shell: optional(text),
});

const shellResizeParams = object<shell.ResizeParams>({
  columns: number,
  rows: number,
  shell: optional(text),
});

const shellAttachParams = object<shell.AttachParams>({
  shell: optional(text),
  readOnly: optional(flag),
});

const shellAttachResult = object<shell.AttachResult>({
  command: text,
  arguments: list(text),
});

const filePathParams = object<file.PathParams>({
  path: text,
});

const fileReadParams = object<file.ReadParams>({
  path: text,
  firstLine: optional(number),
  lastLine: optional(number),
  tail: optional(number),
  raw: optional(flag),
  limitBytes: optional(number),
});

const fileTextFile = object<file.TextFile>({
  kind: word('text'),
  text: text,
  encoding: text,
  firstLine: optional(number),
  totalLines: optional(number),
  version: optional(text),
});

const fileMediaFile = object<file.MediaFile>({
  kind: word('media'),
  mediaType: text,
  base64: text,
  version: optional(text),
});

const fileBinaryFile = object<file.BinaryFile>({
  kind: word('binary'),
  mediaType: text,
  size: number,
  version: optional(text),
});

const fileRawFile = object<file.RawFile>({
  kind: word('raw'),
  base64: text,
  version: optional(text),
});

const fileReadResult: Check<file.ReadResult> = anyOf(
  fileTextFile,
  fileMediaFile,
  fileBinaryFile,
  fileRawFile,
);

const fileWriteParams = object<file.WriteParams>({
  path: text,
  text: optional(text),
  base64: optional(text),
  replace: optional(flag),
  mode: optional(number),
  ifVersion: optional(text),
});

const fileWriteResult = object<file.WriteResult>({
  created: flag,
  version: text,
  ownerKept: flag,
});

const fileEditParams = object<file.EditParams>({
  path: text,
  newText: text,
  oldText: optional(text),
  insertAfter: optional(number),
  ifVersion: optional(text),
});

const fileEditResult = object<file.EditResult>({
  line: number,
  linesRemoved: number,
  linesAdded: number,
  diff: text,
  version: optional(text),
  ownerKept: flag,
});

const fileUndoParams = object<file.UndoParams>({
  path: text,
  force: optional(flag),
});

const fileListParams = object<file.ListParams>({
  path: optional(text),
  nested: optional(flag),
  hidden: optional(flag),
  limit: optional(number),
});

const fileFileKind: Check<file.FileKind> = word(
  'file',
  'directory',
  'symlink',
  'pipe',
  'socket',
  'device',
  'other',
);

const fileFileEntry = object<file.FileEntry>({
  path: text,
  kind: fileFileKind,
  target: optional(fileFileKind),
});

const fileListResult = object<file.ListResult>({
  entries: list(fileFileEntry),
  hiddenLeftOut: number,
  truncated: flag,
  unreadable: optional(list(text)),
});

const fileSearchParams = object<file.SearchParams>({
  pattern: text,
  path: optional(text),
  hidden: optional(flag),
  ignored: optional(flag),
  limit: optional(number),
});

const fileGlobResult = object<file.GlobResult>({
  paths: list(text),
  truncated: flag,
  unreadable: number,
});

const fileGrepParams = object<file.GrepParams>({
  pattern: text,
  path: optional(text),
  hidden: optional(flag),
  ignored: optional(flag),
  limit: optional(number),
  literal: optional(flag),
  ignoreCase: optional(flag),
  files: optional(text),
  context: optional(number),
});

const fileGrepLine = object<file.GrepLine>({
  path: text,
  line: number,
  text: text,
  matches: flag,
});

const fileGrepResult = object<file.GrepResult>({
  lines: list(fileGrepLine),
  truncated: flag,
  unreadable: number,
});

const fileStatParams = object<file.StatParams>({
  path: text,
  follow: optional(flag),
});

const fileStatResult = object<file.StatResult>({
  kind: fileFileKind,
  size: number,
  mode: number,
  user: number,
  group: number,
  modifiedMs: number,
  link: optional(text),
});

const fileHashResult = object<file.HashResult>({
  sha256: text,
  size: number,
  version: optional(text),
});

const fileMakeDirectoryParams = object<file.MakeDirectoryParams>({
  path: text,
  parents: optional(flag),
});

const fileRemoveParams = object<file.RemoveParams>({
  path: text,
  recursive: optional(flag),
});

const fileTransferParams = object<file.TransferParams>({
  from: text,
  to: text,
  replace: optional(flag),
});

const fileCopyResult = object<file.CopyResult>({
  ownerKept: flag,
});

const cellRunParams = object<cell.RunParams>({
  code: text,
  shell: optional(text),
  restart: optional(flag),
  limitMs: optional(number),
  stream: optional(flag),
});

const cellPicture = object<cell.Picture>({
  mediaType: text,
  base64: text,
});

const cellRunResult = object<cell.RunResult>({
  text: text,
  ended: word('finished', 'raised', 'timedOut', 'kernelDied'),
  cwd: text,
  python: text,
  omittedBytes: optional(number),
  pictures: optional(list(cellPicture)),
  newKernel: optional(word('restarted', 'wasStuck')),
});

const pageBrowseParams = object<page.BrowseParams>({
  url: text,
  limitMs: optional(number),
});

const pageBrowseResult = object<page.BrowseResult>({
  url: text,
  text: text,
  pngBase64: optional(text),
  error: optional(text),
});

const actionExecuteParams = object<action.ExecuteParams>({
  action: text,
  args: optional(record(anything)),
  actionId: optional(text),
  runtimeId: optional(text),
  path: optional(text),
  shell: optional(text),
  stream: optional(flag),
  timeout: optional(number),
});

const actionCancelParams = object<action.CancelParams>({
  actionId: text,
});

const actionOutputPiece = object<action.OutputPiece>({
  text: text,
  start: optional(number),
  end: optional(number),
});

const actionRunMetadata = object<action.RunMetadata>({
  exit_code: number,
  pid: number,
  username: nullable(text),
  hostname: nullable(text),
  working_dir: nullable(text),
  py_interpreter_path: nullable(text),
  prefix: text,
  suffix: text,
});

const actionRunExtras = object<action.RunExtras>({
  command: text,
  metadata: actionRunMetadata,
  hidden: flag,
  lost: optional(number),
});

const actionCellExtras = object<action.CellExtras>({
  code: text,
  image_urls: nullable(list(text)),
  lost: optional(number),
});

const actionEditExtras = object<action.EditExtras>({
  path: text,
  prev_exist: flag,
  old_content: nullable(text),
  new_content: nullable(text),
  impl_source: text,
  diff: text,
  _diff_cache: nullable(text),
});

const actionPageExtras = object<action.PageExtras>({
  url: text,
  trigger_by_action: text,
  screenshot: text,
  screenshot_path: nullable(text),
  set_of_marks: text,
  error: flag,
  goal_image_urls: list(text),
  open_pages_urls: list(text),
  active_page_index: number,
  dom_object: empty,
  axtree_object: empty,
  extra_element_properties: empty,
  last_browser_action: text,
  last_browser_action_error: text,
  focused_element_bid: text,
  filter_visible_only: flag,
});

const actionReadExtras = object<action.ReadExtras>({
  path: text,
  impl_source: text,
});

const actionWriteExtras = object<action.WriteExtras>({
  path: text,
});

const actionErrorExtras = object<action.ErrorExtras>({
  error_id: text,
  trace: optional(text),
});

const actionExtras: Check<action.Extras> = anyOf(
  actionRunExtras,
  actionCellExtras,
  actionEditExtras,
  actionPageExtras,
  actionReadExtras,
  actionWriteExtras,
  actionErrorExtras,
  empty,
);

const actionObservation = object<action.Observation>({
  message: text,
  observation: text,
  content: text,
  extras: actionExtras,
  cause: optional(text),
  success: optional(flag),
});

/** The checks of a method. */
export interface MethodChecks<M extends keyof Methods> {
  readonly params: Check<Methods[M]['params']>;
  readonly result: Check<Methods[M]['result']>;
  readonly progress?: Check<Methods[M]['progress']>;
}

export const METHOD_CHECKS: { readonly [M in keyof Methods]: MethodChecks<M> } = {
  'vscode/chat': { params: vscodeChatParams, result: vscodeChatResult, progress: vscodeTextProgress },
  'vscode/showMessage': { params: vscodeShowMessageParams, result: vscodeShowMessageResult },
  'vscode/executeCommand': { params: vscodeExecuteCommandParams, result: vscodeExecuteCommandResult },
  'vscode/getChatHistory': { params: vscodeChatHistoryParams, result: vscodeChatHistoryResult },
  'bridge/hello': { params: bridgeHelloParams, result: bridgeHelloResult },
  'bridge/ping': { params: empty, result: empty },
  'bridge/shutdown': { params: empty, result: empty },
  'bridge/tail': { params: empty, result: empty },
  'bridge/createToken': { params: bridgeCreateTokenParams, result: bridgeCreateTokenResult },
  'bridge/status': { params: empty, result: bridgeStatusResult },
  'runtime/register': { params: runtimeRegisterParams, result: runtimeRuntimeRef },
  'runtime/update': { params: runtimeUpdateParams, result: empty },
  'runtime/unregister': { params: empty, result: empty },
  'runtime/list': { params: empty, result: list(runtimeRuntimeInfo) },
  'runtime/get': { params: runtimeRuntimeRef, result: runtimeRuntimeInfo },
  'shell/create': { params: shellCreateParams, result: shellShellInfo },
  'shell/list': { params: empty, result: shellListResult },
  'shell/run': { params: shellRunParams, result: shellCommandState, progress: shellOutputProgress },
  'shell/wait': { params: shellWaitParams, result: shellCommandState, progress: shellOutputProgress },
  'shell/read': { params: shellReadParams, result: shellReadResult },
  'shell/input': { params: shellInputParams, result: empty },
  'shell/keys': { params: shellKeysParams, result: empty },
  'shell/signal': { params: shellSignalParams, result: empty },
  'shell/resize': { params: shellResizeParams, result: empty },
  'shell/close': { params: shellShellRef, result: empty },
  'shell/attach': { params: shellAttachParams, result: shellAttachResult },
  'file/read': { params: fileReadParams, result: fileReadResult },
  'file/write': { params: fileWriteParams, result: fileWriteResult },
  'file/edit': { params: fileEditParams, result: fileEditResult },
  'file/undo': { params: fileUndoParams, result: fileEditResult },
  'file/list': { params: fileListParams, result: fileListResult },
  'file/glob': { params: fileSearchParams, result: fileGlobResult },
  'file/grep': { params: fileGrepParams, result: fileGrepResult },
  'file/stat': { params: fileStatParams, result: fileStatResult },
  'file/hash': { params: filePathParams, result: fileHashResult },
  'file/makeDirectory': { params: fileMakeDirectoryParams, result: empty },
  'file/removeDirectory': { params: filePathParams, result: empty },
  'file/remove': { params: fileRemoveParams, result: empty },
  'file/move': { params: fileTransferParams, result: empty },
  'file/copy': { params: fileTransferParams, result: fileCopyResult },
  'cell/run': { params: cellRunParams, result: cellRunResult, progress: vscodeTextProgress },
  'cell/restart': { params: shellShellRef, result: empty },
  'page/browse': { params: pageBrowseParams, result: pageBrowseResult },
  'action/execute': { params: actionExecuteParams, result: actionObservation, progress: actionOutputPiece },
  'action/cancel': { params: actionCancelParams, result: empty },
};

export const NOTIFICATION_CHECKS: { readonly [N in keyof Notifications]: Check<Notifications[N]> } = {
  '$/cancelRequest': bridgeCancelParams,
  '$/progress': bridgeProgressParams,
  'bridge/request': bridgeRequestRecord,
};
