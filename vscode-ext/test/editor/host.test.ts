import assert from 'node:assert/strict';

import * as vscode from 'vscode';

import type { ChatHistoryResult, ChatResult, ExecuteCommandResult } from '../../src/bridge/protocol';
import type { Fifo } from '../e2e/nets';
import { Client } from './client';
import { waitingNet } from './net';

suite('a window as host', () => {
  let client: Client;
  let fifo: Fifo;

  suiteSetup(async () => {
    const waiting = waitingNet('print("waiting")');
    fifo = waiting.fifo;
    const session = await vscode.commands.executeCommand<string>('evolve.runNet', waiting.file);
    client = await Client.connect(session);
  });

  suiteTeardown(() => {
    client.close();
    fifo.open();
  });

  test('chat streams the answer of the model', async () => {
    const { id, answer } = client.send('vscode/chat', { message: 'abc' });
    const { response, conversationId } = (await answer).result as ChatResult;
    assert.match(response, /^fake-echo was given 1 message\(s\), .*: cba$/);
    assert.match(conversationId, /^conv-/);
    const pieces = (client.progress.get(id) ?? []) as { text: string }[];
    assert.ok(pieces.length > 3, `${pieces.length} pieces`);
    assert.equal(pieces.map(({ text }) => text).join(''), response);
  });

  test('a conversation goes on, and its history can be read', async () => {
    const first = await client.result<ChatResult>('vscode/chat', { message: 'one' });
    const { conversationId } = first;
    const second = await client.result<ChatResult>('vscode/chat', { message: 'two', conversationId });
    assert.match(second.response, /given 3 message\(s\)/);
    assert.equal(second.conversationId, conversationId);
    const { messages } = await client.result<ChatHistoryResult>('vscode/getChatHistory', { conversationId });
    assert.deepEqual(
      messages.map(({ role, content }) => [role, content]),
      [
        ['user', 'one'],
        ['assistant', first.response],
        ['user', 'two'],
        ['assistant', second.response],
      ],
    );
    assert.ok(messages.every(({ timestamp }) => Math.abs(Date.now() - timestamp) < 60_000));
  });

  test('a model is chosen by name, and an unknown one is an error that lists the others', async () => {
    const answer = await client.ask('vscode/chat', { message: 'hi', model: 'no-such-model' });
    assert.equal(answer.error?.code, -32602);
    assert.match(answer.error.message, /fake-echo.*fake-refusing/);
  });

  test('a refusal is a result, and is not remembered', async () => {
    const params = { message: 'hi', model: 'FAKE REFUSING', conversationId: 'refused' };
    const result = await client.result<ChatResult>('vscode/chat', params);
    assert.equal(result.blocked, true);
    assert.match(result.blockedReason ?? '', /^refused: fake refusing says .*off topic/);
    assert.equal(result.openedChat, false);
    const history = await client.result<ChatHistoryResult>('vscode/getChatHistory', {
      conversationId: 'refused',
    });
    assert.deepEqual(history.messages, []);
  });

  test('a cancelled chat stops the model', async () => {
    const cancelled = vscode.commands.executeCommand('fakeLm.cancelled');
    const { id, answer } = client.send('vscode/chat', { message: 'hi', model: 'fake-silent' });
    assert.deepEqual(await client.progressOf(id), { text: 'Well,' });
    client.cancel(id);
    assert.equal((await answer).error?.code, -32800);
    assert.equal(await cancelled, 'cancelled');
  });

  test('a deadline stops the model too', async () => {
    const cancelled = vscode.commands.executeCommand('fakeLm.cancelled');
    const answer = await client.ask('vscode/chat', { message: 'hi', model: 'fake-silent', timeout: 500 });
    assert.equal(answer.error?.code, -32052);
    assert.equal(await cancelled, 'cancelled');
  });

  test('a message is answered at once', async () => {
    assert.deepEqual(await client.result('vscode/showMessage', { message: 'hello', level: 'warning' }), {});
  });

  test('a command gets real values and gives plain ones', async () => {
    const file = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file('/');
    const registered = vscode.commands.registerCommand(
      'test.values',
      (uri: vscode.Uri, at: vscode.Position, text: string) => {
        assert.ok(uri instanceof vscode.Uri && at instanceof vscode.Position);
        return { name: uri.fsPath, next: at.translate(1), text, skip: () => 1 };
      },
    );
    try {
      const args = [{ $uri: file.toString() }, { line: 1, character: 2 }, 'file:///stays/a/text'];
      const { result } = await client.result<ExecuteCommandResult>('vscode/executeCommand', {
        command: 'test.values',
        args,
      });
      assert.deepEqual(result, {
        name: file.fsPath,
        next: { line: 2, character: 2 },
        text: 'file:///stays/a/text',
      });
    } finally {
      registered.dispose();
    }
  });

  test('a command that returns nothing has no result', async () => {
    assert.deepEqual(
      await client.result('vscode/executeCommand', { command: 'workbench.action.closePanel' }),
      {},
    );
  });

  test('the failure of a command is passed on', async () => {
    const missing = await client.ask('vscode/executeCommand', { command: 'no.such.command' });
    assert.equal(missing.error?.data['kind'], 'CommandFailed');
    assert.match(missing.error.message, /no\.such\.command/);
    const params = await client.ask('vscode/executeCommand', { args: [] });
    assert.equal(params.error?.code, -32602);
    assert.match(params.error.message, /Missing command parameter/);
  });

  test('the policy of the user is obeyed at once', async () => {
    const settings = vscode.workspace.getConfiguration('evolve');
    const policy = { 'test.forbidden*': 'deny', '*': 'allow' };
    await settings.update('commands.policy', policy, vscode.ConfigurationTarget.Global);
    try {
      const answer = await client.ask('vscode/executeCommand', { command: 'test.forbidden.thing' });
      assert.equal(answer.error?.code, -32054);
      assert.match(answer.error.message, /evolve\.commands\.policy forbids it/);
      assert.deepEqual(
        await client.result('vscode/executeCommand', { command: 'workbench.action.closePanel' }),
        {},
      );
    } finally {
      await settings.update('commands.policy', undefined, vscode.ConfigurationTarget.Global);
    }
  });

  test('a method that nobody serves is not found', async () => {
    assert.equal((await client.ask('vscode/fly')).error?.code, -32601);
  });
});
