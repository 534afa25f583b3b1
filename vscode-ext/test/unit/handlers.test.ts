import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { ChatHistory, getChatHistory } from '../../src/handlers/chatHistory';
import { chooseModel } from '../../src/handlers/chatModel';
import { decide } from '../../src/handlers/commandPolicy';
import { grantOf, showCommand } from '../../src/handlers/commandQuestion';
import { withoutCommandLinks } from '../../src/handlers/notificationText';
import { readChatParams, readExecuteCommandParams, readShowMessageParams } from '../../src/handlers/params';
import { forPerson, whileWanted } from '../../src/handlers/waiting';

test('parameters are read, and what is wrong is named', () => {
  assert.deepEqual(readChatParams({ message: 'hi', timeout: 5, model: '', conversationId: null }), {
    message: 'hi',
  });
  assert.deepEqual(readChatParams({ message: 'hi', model: 'm', conversationId: 'c' }), {
    ...{ message: 'hi', model: 'm', conversationId: 'c' },
  });
  assert.deepEqual(readShowMessageParams({ message: 'hi', level: 'loud' }), {
    message: 'hi',
    level: 'info',
    buttons: [],
  });
  assert.deepEqual(readExecuteCommandParams({ command: 'a.b' }), { command: 'a.b', args: [] });
  const wrong: [() => unknown, RegExp][] = [
    [() => readChatParams(undefined), /Missing message parameter/],
    [() => readChatParams({ message: '' }), /Missing message parameter/],
    [() => readChatParams({ message: 3 }), /parameter message must be a text/],
    [() => readChatParams([]), /must be an object/],
    [() => readShowMessageParams({ message: 'hi', buttons: 'Yes' }), /buttons must be an array/],
    [() => readShowMessageParams({ message: 'hi', buttons: [''] }), /buttons must be an array/],
    [() => readExecuteCommandParams({ args: [] }), /Missing command parameter/],
    [() => readExecuteCommandParams({ command: 'a', args: {} }), /args must be an array/],
  ];
  for (const [read, message] of wrong) {
    assert.throws(
      read,
      (error: Error) => message.test(error.message) && (error as { kind?: string }).kind === 'InvalidParams',
    );
  }
});

test('history gives the newest messages, oldest first', async () => {
  const history = new ChatHistory();
  for (let turn = 1; turn <= 8; turn++) {
    history.add('c', `question ${turn}`, `answer ${turn}`, turn * 10, turn * 10 + 1);
  }
  const last = await getChatHistory({ history }, { conversationId: 'c', limit: 2 });
  assert.deepEqual(last.messages, [
    { role: 'user', content: 'question 8', timestamp: 80 },
    { role: 'assistant', content: 'answer 8', timestamp: 81 },
  ]);
  const byDefault = await getChatHistory({ history }, { conversationId: 'c' });
  assert.equal(byDefault.messages.length, 10);
  assert.equal(byDefault.messages[0]?.content, 'question 4');
  assert.deepEqual((await getChatHistory({ history }, { conversationId: 'c', limit: 0 })).messages, []);
  assert.equal((await getChatHistory({ history }, { conversationId: 'c', limit: 99 })).messages.length, 16);
  assert.deepEqual((await getChatHistory({ history }, { conversationId: 'unknown' })).messages, []);
  assert.throws(() => getChatHistory({ history }, {}), /Missing conversationId parameter/);
  assert.throws(
    () => getChatHistory({ history }, { conversationId: 'c', limit: -1 }),
    /limit must be a number/,
  );
});

test('history gives a model whole turns that fit, the newest first', () => {
  const history = new ChatHistory();
  for (const turn of ['a', 'b', 'c']) {
    history.add('c', turn.repeat(10), turn.repeat(10), 1, 2);
  }
  const questions = (room: number): string[] =>
    history
      .recent('c', room)
      .filter(({ role }) => role === 'user')
      .map(({ content }) => content[0] ?? '');
  assert.deepEqual(questions(1_000), ['a', 'b', 'c']);
  assert.deepEqual(questions(60), ['a', 'b', 'c']);
  assert.deepEqual(questions(59), ['b', 'c']);
  assert.deepEqual(questions(20), ['c']);
  assert.deepEqual(questions(19), []);
  assert.deepEqual(questions(-5), []);
  assert.deepEqual(history.recent('unknown', 100), []);
});

test('history forgets what is old instead of growing for ever', () => {
  const history = new ChatHistory();
  history.add('first', 'q', 'a', 1, 1);
  history.add('second', 'q', 'a', 1, 1);
  for (let count = 0; count < 198; count++) {
    history.add(history.newConversationId(), 'q', 'a', 1, 1);
  }
  history.add('first', 'again', 'a', 2, 2);
  history.add('one more', 'q', 'a', 1, 1);
  assert.equal(history.messages('first').length, 4, 'used lately');
  assert.equal(history.messages('second').length, 0, 'not used for longest');
  for (let count = 0; count < 300; count++) {
    history.add('long', 'q', 'a', count, count);
  }
  assert.equal(history.messages('long').length, 400);
});

test('a model is found by exact name, then by a part of one', () => {
  const models = [
    { id: 'gpt-5-mini', name: 'GPT-5 mini', family: 'gpt-5-mini' },
    { id: 'gpt-5', name: 'GPT-5', family: 'gpt-5' },
    { id: 'claude-x', name: 'Claude X', family: 'claude' },
  ];
  const chosen = (wanted?: string): unknown => {
    const choice = chooseModel(models, wanted);
    return choice.kind === 'chosen' ? choice.model.id : choice.kind;
  };
  assert.equal(chosen(), 'gpt-5-mini');
  assert.equal(chosen(''), 'gpt-5-mini');
  assert.equal(chosen('gpt-5'), 'gpt-5');
  assert.equal(chosen('Claude X'), 'claude-x');
  assert.equal(chosen('CLAUDE'), 'claude-x');
  assert.equal(chosen('llama'), 'unknown');
  assert.deepEqual(chooseModel([], 'gpt-5'), { kind: 'none' });
});

test('the policy decides by the strictest layer', () => {
  const check = (user: unknown, workspace: unknown, command = 'workbench.action.x', trusted = true): string =>
    decide(command, { user, workspace: [workspace, undefined], trusted });
  assert.equal(check(undefined, undefined), 'allow');
  assert.equal(check('ask', undefined), 'ask');
  assert.equal(check('ask', 'allow'), 'ask', 'a workspace cannot loosen');
  assert.equal(check('deny', { '*': 'allow' }), 'deny');
  assert.equal(check('allow', 'ask'), 'ask', 'a workspace can tighten');
  assert.equal(check('allow', { 'workbench.*': 'deny', '*': 'allow' }), 'deny');
  assert.equal(check('allow', 'allow', 'x', false), 'deny', 'not trusted');
});

test('the first pattern that fits decides, and what nobody thought of is asked', () => {
  const policy = { 'editor.action.format*': 'allow', 'editor.*': 'deny', 'exact.name': 'allow' };
  const check = (command: string): string => decide(command, { user: policy, workspace: [], trusted: true });
  assert.equal(check('editor.action.formatDocument'), 'allow');
  assert.equal(check('editor.action.rename'), 'deny');
  assert.equal(check('exact.name'), 'allow');
  assert.equal(check('exactXname'), 'ask', 'a dot is a dot');
  assert.equal(check('exact.name.more'), 'ask');
  assert.equal(check('toString'), 'ask');
});

test('a policy that makes no sense opens nothing', () => {
  for (const user of ['alow', 7, [], { '*': 'yes' }, null]) {
    const decision = decide('x', { user, workspace: [], trusted: true });
    assert.equal(decision, user === null ? 'allow' : 'ask', JSON.stringify(user));
  }
});

test('a grant is for a command with the arguments that the person saw', () => {
  const grants = new Set([grantOf('terminal.send', [{ text: 'ls' }])]);
  assert.ok(grants.has(grantOf('terminal.send', [{ text: 'ls' }])));
  for (const args of [[], [{ text: 'rm -r /' }], [{ text: 'ls' }, 1], ['{"text":"ls"}']]) {
    assert.ok(!grants.has(grantOf('terminal.send', args)), JSON.stringify(args));
  }
  assert.ok(!grants.has(grantOf('terminal.send2', [{ text: 'ls' }])));
});

test('a command is shown whole, or not in the notification', () => {
  assert.deepEqual(showCommand('a.b', []), { command: 'a.b', args: '', fits: true });
  assert.deepEqual(showCommand('a.b', ['x', { y: 1 }]), { command: 'a.b', args: '"x",{"y":1}', fits: true });
  const hidden = `${' '.repeat(300)}; rm -r /`;
  assert.ok(showCommand('a.b', [`ls${hidden}`]).args.includes('rm -r /'));
  assert.equal(showCommand('a.b', ['x'.repeat(800)]).fits, false);
  assert.equal(showCommand('a'.repeat(800), []).fits, false);
});

test('nothing invisible is in a question', () => {
  const { command, args } = showCommand('a\u202e.b\n', ['x\u200by\ufeff\u2028z\u{e0041} ä']);
  assert.equal(command, 'a\\u{202e}.b\\u{a}');
  assert.equal(args, '"x\\u{200b}y\\u{feff}\\u{2028}z\\u{e0041} ä"');
});

/** Links as the editor finds them in the text of a notification. */
const LINKS = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/gi;

test('links in a message lead to web pages only', () => {
  const links = (text: string): string[] =>
    [...withoutCommandLinks(text).matchAll(LINKS)].map(([, , target]) => target ?? '');
  for (const text of [
    '[Save](command:workbench.action.terminal.sendSequence?%5B%5D)',
    '[Save](COMMAND:x "title") and [more](file:///etc/passwd)',
    '[[a](command:x)](command:y)',
    '[a](command:x',
  ]) {
    assert.deepEqual(links(text), [], text);
    assert.equal(withoutCommandLinks(text).replaceAll('\u200b', ''), text, 'it stays readable');
  }
  assert.deepEqual(links('[a](https://a.example/b) [c](HTTP://d.example)'), [
    'https://a.example/b',
    'HTTP://d.example',
  ]);
  assert.ok(links('[a](https://x[b](command:y)').every((target) => target.startsWith('https://')));
  assert.equal(withoutCommandLinks('f(x) [1] (2)'), 'f(x) [1] (2)');
});

test('every text from outside in a notification has its links checked', () => {
  const source = path.resolve(__dirname, '../../src');
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    const code = name.endsWith('.ts') ? readFileSync(path.join(source, name), 'utf8') : '';
    const shown = [...code.matchAll(/(?:SHOW\[level\]|window\.show\w+Message)\(\s*([^\n]*)/g)];
    for (const [call, text] of shown) {
      const safe = /^(withoutCommandLinks\(|vscode\.l10n\.t\('[^{']*'\)|text, \.\.\.titles)/.test(text ?? '');
      assert.ok(safe, `${name}: ${call}`);
    }
  }
});

test('waiting ends with the caller', async () => {
  const never = new Promise<never>(() => undefined);
  const controller = new AbortController();
  const waiting = whileWanted(controller.signal, never);
  controller.abort(new Error('gone'));
  await assert.rejects(waiting, /gone/);
  await assert.rejects(whileWanted(controller.signal, Promise.resolve(1)), /gone/);
  assert.equal(await whileWanted(new AbortController().signal, Promise.resolve(1)), 1);
});

test('signs of life are sent while a person thinks, and not after', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const signs: unknown[] = [];
  let decide: (choice: string) => void = () => undefined;
  const choice = new Promise<string>((resolve) => {
    decide = resolve;
  });
  const ctx = { signal: new AbortController().signal, progress: (value: unknown) => signs.push(value) };
  const waiting = forPerson(ctx, { waitingFor: 'person' }, choice);
  t.mock.timers.tick(9_000);
  decide('Yes');
  assert.equal(await waiting, 'Yes');
  t.mock.timers.tick(9_000);
  assert.deepEqual(signs, [{ waitingFor: 'person' }, { waitingFor: 'person' }]);
});
