// What containers leave behind: nothing. Not after hundreds of commands, not after the end of Node by SIGKILL, not after
// an engine that restarts in the middle.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { SandboxShell, SubprocessSandbox } from 'croft';
import { containersOf, IMAGE, networksOf, uniqueLabel, withEngine, withSandbox } from './support/docker.js';
import { privateEngine, whyNoPrivateEngine } from './support/private-engine.js';
import { alive, eventually, PACKAGE, uniqueSeconds } from './support/processes.js';

const MODES = ['command', 'pool', 'session'] as const;

function held(): number {
  return readdirSync('/proc/self/fd').length;
}

/** Sockets of containers that are being started. */
function sockets(pid = process.pid): string[] {
  return readdirSync(tmpdir()).filter((name) => new RegExp(`^croft-\\d+-${pid}-\\d+-[0-9a-f]+$`).test(name));
}

describe('lifecycle', { ...withEngine, concurrency: false }, () => {
  test('300 commands, one after the other and four at once, leave no container, descriptor or socket', async () => {
    await withSandbox(async ({ shell }) => {
      assert.equal((await shell.exec('true')).exitCode, 0);
    });
    const before = held();
    await withSandbox(async ({ shell }) => {
      for (let round = 0; round < 10; round++) assert.equal((await shell.exec(`exit ${round}`)).exitCode, round);
    });
    await withSandbox(
      async ({ shell }) => {
        for (let round = 0; round < 250; round++) assert.equal((await shell.exec(`echo ${round}`)).stdout, `${round}\n`);
      },
      { reuse: 'session' },
    );
    await withSandbox(
      async ({ shell }) => {
        for (let round = 0; round < 10; round++) {
          const results = await Promise.all([0, 1, 2, 3].map((n) => shell.exec(`echo ${n}`, { timeoutMs: 60_000 })));
          assert.deepEqual(results.map(({ stdout }) => stdout), ['0\n', '1\n', '2\n', '3\n']);
        }
      },
      { reuse: 'pool' },
    );
    await eventually('descriptors are given back', () => held() <= before + 2);
    assert.deepEqual(sockets(), []);
  });

  for (const reuse of MODES) {
    test(`SIGKILL to Node leaves no container and no process of one (${reuse})`, async () => {
      const labels = uniqueLabel();
      const mark = uniqueSeconds();
      const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'croft-docker-')));
      const script = `
        import { SubprocessSandbox } from 'croft';
        const sandbox = new SubprocessSandbox({ image: '${IMAGE}', reuse: '${reuse}', labels: ${JSON.stringify(labels)} });
        await sandbox.run({ command: 'true', cwd: process.argv[1] });
        await sandbox.run({ command: 'sh', args: ['-c', 'setsid sleep ${mark} & sleep ${mark}'], cwd: process.argv[1], timeoutMs: 600_000 });`;
      const child = spawn(process.execPath, ['--input-type=module', '--eval', script, cwd], { cwd: PACKAGE, stdio: 'inherit' });
      await eventually('the command runs', () => alive(mark) >= 2, 30_000);
      // One killed between its create and start calls has no lifeline yet and waits for the sweep.
      const expected = reuse === 'pool' ? 3 : 1;
      const running = async (): Promise<number> => (await containersOf(labels)).filter(({ State }) => State === 'running').length;
      await eventually('all are up', async () => (await running()) === expected && sockets(child.pid).length === 0, 30_000);
      child.kill('SIGKILL');
      await eventually('its containers are gone', async () => (await containersOf(labels)).length === 0, 20_000);
      assert.equal(alive(mark), 0);
      rmSync(cwd, { recursive: true });
    });
  }

  test('a process that ends without close() leaves no container', async () => {
    const labels = uniqueLabel();
    const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'croft-docker-')));
    const script = `
      import { SubprocessSandbox } from 'croft';
      const sandbox = new SubprocessSandbox({ image: '${IMAGE}', reuse: 'pool', labels: ${JSON.stringify(labels)} });
      console.log((await sandbox.run({ command: 'echo', args: ['done'], cwd: process.argv[1] })).stdout);`;
    const run = spawnSync(process.execPath, ['--input-type=module', '--eval', script, cwd], { cwd: PACKAGE, encoding: 'utf8', timeout: 60_000 });
    assert.deepEqual([run.status, run.stdout], [0, 'done\n\n']);
    await eventually('its containers are gone', async () => (await containersOf(labels)).length === 0, 20_000);
    rmSync(cwd, { recursive: true });
  });

  test('what a dead owner left is swept at the next start, and what a live one has is kept', async () => {
    const labels = uniqueLabel();
    const { api } = await import('./support/docker.js');
    const make = async (owner: string): Promise<void> => {
      const Labels = { ...labels, 'com.lousho.sandbox': 'command', 'com.lousho.sandbox.owner': owner };
      const { status } = await api('POST', '/containers/create', { Image: IMAGE, Cmd: ['true'], Labels, HostConfig: { NetworkMode: 'none' } });
      assert.equal(status, 201);
      assert.equal((await api('POST', '/networks/create', { Name: `croft-test-${owner.replaceAll('/', '-')}-${process.pid}`, Internal: true, Labels })).status, 201);
    };
    let live = '';
    await withSandbox(async ({ shell, labels: own }) => {
      await shell.exec('true', { timeoutMs: 60_000, onOutput: () => {} });
      const call = shell.exec('sleep 100', { timeoutMs: 600_000 });
      await eventually('it runs', async () => (await containersOf(own)).length > 0);
      live = (await containersOf(own))[0].Labels['com.lousho.sandbox.owner'];
      void call.catch(() => {});
    });
    const [boot, place, , started] = live.split('/');
    await make(`${boot}/${place}/1/0`);
    await make(`${boot}/${place}/4194303/${started}`);
    await make(live);
    const stale = join(tmpdir(), `croft-${place}-4194303-${started}-0123456789abcdef`);
    mkdirSync(stale);
    try {
      await withSandbox(async ({ shell }) => {
        await shell.exec('true');
        const owners = async (): Promise<string[]> => (await containersOf(labels)).map((one) => one.Labels['com.lousho.sandbox.owner']);
        await eventually('the dead ones are gone', async () => (await owners()).length === 1 && (await networksOf(labels)).length === 1);
        assert.deepEqual(await owners(), [live]);
        await eventually('a stale socket is gone too', () => !existsSync(stale));
      });
    } finally {
      for (const { Id } of await containersOf(labels)) await api('DELETE', `/containers/${Id}?force=1`);
      for (const { Id } of await networksOf(labels)) await api('DELETE', `/networks/${Id}`);
    }
  });

  test('close() during commands ends them and leaves nothing', async () => {
    for (const reuse of MODES) {
      const mark = uniqueSeconds();
      const results = await withSandbox(
        async ({ shell, sandbox }) => {
          const calls = [0, 1].map(() => shell.exec(`sleep ${mark}`, { timeoutMs: 600_000 }));
          await eventually('they run', () => alive(mark) >= 2, 30_000);
          await sandbox.close();
          await assert.rejects(shell.exec('true'), { code: 'CLOSED' });
          return await Promise.all(calls);
        },
        { reuse },
      );
      for (const { aborted } of results) assert.equal(aborted, true);
      assert.equal(alive(mark), 0);
    }
  });

  test('in a session files stay and a timed-out command takes its whole tree along', async () => {
    const mark = uniqueSeconds();
    await withSandbox(
      async ({ shell, labels }) => {
        await shell.exec('echo kept > /tmp/file');
        const slow = await shell.exec(`setsid sleep ${mark} & sleep ${mark}`, { timeoutMs: 1500 });
        assert.equal(slow.timedOut, true);
        await eventually('its tree is gone', () => alive(mark) === 0);
        assert.equal((await shell.exec('cat /tmp/file')).stdout, 'kept\n');
        assert.equal((await containersOf(labels)).length, 1);
      },
      { reuse: 'session' },
    );
  });

  test('in a session a command that kills its supervisor costs the container, not the promise', async () => {
    const mark = uniqueSeconds();
    await withSandbox(
      async ({ shell }) => {
        await shell.exec(`setsid sleep ${mark} & sleep 0.3; kill -9 $PPID; sleep 1`, { timeoutMs: 20_000 });
        await eventually('its tree is gone', () => alive(mark) === 0);
        assert.equal((await shell.exec('echo next')).stdout, 'next\n');
      },
      { reuse: 'session' },
    );
  });

  test('from the pool each command has a container of its own', async () => {
    await withSandbox(
      async ({ shell }) => {
        const names = new Set<string>();
        for (let round = 0; round < 6; round++) {
          const { stdout } = await shell.exec('cat /tmp/mark 2>/dev/null; touch /tmp/mark; cat /proc/self/mountinfo | grep -o "overlay2/[0-9a-f]*/work\\|overlay2/[0-9a-f]*/diff" | tail -1; ls /tmp');
          assert.ok(!names.has(stdout) || stdout === 'mark\n', stdout);
          assert.ok(stdout.endsWith('mark\n'));
          names.add(stdout);
        }
      },
      { reuse: 'pool' },
    );
  });
});

test('an engine that restarts in the middle ends the command, leaves nothing, and serves the next', { skip: withEngine.skip || whyNoPrivateEngine(), timeout: 180_000 }, async (t) => {
  const engine = await privateEngine(t);
  const labels = uniqueLabel();
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'croft-docker-')));
  const mark = uniqueSeconds();
  const sandbox = new SubprocessSandbox({ image: IMAGE, socketPath: engine.socketPath, reuse: 'pool', labels });
  const shell = new SandboxShell(sandbox, { cwd });
  assert.equal((await shell.exec('echo before')).stdout, 'before\n');
  for (const how of ['SIGTERM', 'SIGKILL'] as const) {
    const call = shell.exec(`sleep ${mark}`, { timeoutMs: 600_000 });
    await eventually('it runs', () => alive(mark) >= 1, 30_000);
    await engine.restart(how);
    const result = await call;
    assert.equal(result.timedOut, false);
    assert.notEqual(result.exitCode, 0);
    assert.equal(alive(mark), 0);
    assert.equal((await shell.exec('echo after', { timeoutMs: 60_000 })).stdout, 'after\n');
  }
  await sandbox.close();
  await eventually('nothing is left', async () => (await engine.containers(labels)).length === 0, 30_000);
  rmSync(cwd, { recursive: true });
});
