import path from 'node:path';
import { describe, it } from 'node:test';

import { net, workspace } from './nets';
import { stage } from './setup';

describe('another extension with the same command', () => {
  const play = stage({ extensions: ['rival'] });

  it('keeps it, and one message says so', async () => {
    const window = await play.open(workspace(path.join(play.home, 'x'), { 'x.evolve.yaml': net('pass') }));
    await window.command('evolve.showLog');
    await window.notification('the extension evolvetest.rival has the command evolve.runNet too');
    await window.screenshot('rival');
    await window.command('evolve.runNet');
    await window.notification('The rival runs.');
  });
});
