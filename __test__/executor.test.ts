// A workspace whose commands run elsewhere: what its executor is told, what becomes of its answers, and the end of all
// that was started, over an adapter that is nobody's but the test's, over the host, and over containers.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  createGitTools,
  createProcessTools,
  createShellTool,
  createWorkspaceTools,
  MemoryWorkspace,
  NodeWorkspace,
  NoopSandbox,
  SandboxShell,
  SubprocessSandbox,
  type SandboxAdapter,
  type SandboxExit,
  type SandboxRunOptions,
  type SandboxSpawnOptions,
  type SubprocessSandboxOptions,
} from 'croft';
import { containersOf, IMAGE, uniqueLabel, withEngine } from './support/docker.js';
import { alive, eventually, PACKAGE, uniqueSeconds, withWorkspace } from './support/processes.js';

const never = new Promise<never>(() => {});

/** Somebody else's: `run` and nothing more. */
function plain(answer: (options: SandboxRunOptions) => unknown = () => ({ stdout: '', stderr: '', exitCode: 0 })): SandboxAdapter & { calls: SandboxRunOptions[] } {
  const calls: SandboxRunOptions[] = [];
  return { kind: 'container', calls, run: async (options) => (calls.push(options), await (answer(options) as never)) };
}

/** A background process that only the test ends. */
function spawning(): SandboxAdapter & { started: SandboxSpawnOptions[]; ended: string[]; exit: (exit: SandboxExit) => void } {
  const adapter = {
    ...plain(),
    started: [] as SandboxSpawnOptions[],
    ended: [] as string[],
    exit: (_exit: SandboxExit): void => {},
    spawn: async (options: SandboxSpawnOptions) => {
      adapter.started.push(options);
      options.onOutput({ stream: 'stdout', text: 'early\n' });
      const exited = new Promise<SandboxExit>((resolve) => (adapter.exit = resolve));
      return { pid: 7, exited, kill: async () => (adapter.ended.push('kill'), adapter.exit({ exitCode: 143, signal: 'SIGTERM' })) };
    },
  };
  return adapter;
}

describe('what an executor is told', () => {
  test('the shell line, the real directory, the environment that was given, a timeout and the policy, and no more', async () => {
    const executor = plain(() => ({ stdout: 'out', stderr: '', exitCode: 3 }));
    process.env['CROFT_NAMED'] = 'named';
    await withWorkspace(
      async ({ root, ws }) => {
        mkdirSync(join(root, 'real'));
        symlinkSync('real', join(root, 'link'));
        const result = await ws.exec('echo "$A"', { cwd: 'link', env: { B: '2' }, input: 'in' });
        assert.deepEqual((({ stdout, exitCode, timedOut, truncated, droppedBytes }) => [stdout, exitCode, timedOut, truncated, droppedBytes])(result), ['out', 3, false, false, 0]);
        assert.equal(typeof result.durationMs, 'number');
        const { signal, policy, ...told } = executor.calls[0]!;
        assert.deepEqual(told, {
          command: 'sh',
          args: ['-c', 'echo "$A"'],
          root,
          cwd: join(root, 'real'),
          env: { CROFT_NAMED: 'named', A: '1', B: '2' },
          timeoutMs: 120_000,
          maxOutputBytes: 1024 * 1024,
          input: 'in',
        });
        assert.ok(signal instanceof AbortSignal);
        assert.deepEqual(policy, {
          mode: 'coding',
          root,
          readable: ['/usr/share'],
          writable: [],
          denied: ['.env*'],
          pathRules: [{ pattern: 'vendor/', action: 'ask', ops: ['write'] }],
          writeInside: 'allow',
          readOutside: 'ask',
          writeOutside: 'deny',
          shell: 'ask',
        });
        await ws.exec(['node', '-v'], { timeoutMs: 5 });
        assert.deepEqual((({ command, args, cwd, timeoutMs }) => [command, args, cwd, timeoutMs])(executor.calls[1]!), ['node', ['-v'], root, 5]);
      },
      { executor, env: { A: '1' }, inheritEnv: ['CROFT_NAMED', 'CROFT_ABSENT'], mode: 'coding', readable: ['/usr/share'], deniedPaths: ['.env*'], pathRules: [{ pattern: 'vendor/', action: 'ask', ops: ['write'] }] },
    );
    delete process.env['CROFT_NAMED'];
  });

  test('inheritEnv: true adds nothing where it is not the host, and another shell is named as it is', async () => {
    const executor = plain();
    await withWorkspace(async ({ ws }) => void (await ws.exec('x')), { executor, inheritEnv: true, shell: 'bash' });
    assert.deepEqual([executor.calls[0]?.env, executor.calls[0]?.command], [{}, 'bash']);
  });

  test('nothing of what the policy, the confinement or the arguments refuse', async () => {
    const executor = plain();
    await withWorkspace(
      async ({ root, ws }) => {
        symlinkSync('/', join(root, 'out'));
        writeFileSync(join(root, 'file'), '');
        await assert.rejects(ws.exec('x', { cwd: '../..' }), { code: 'OUTSIDE_WORKSPACE' });
        await assert.rejects(ws.exec('x', { cwd: 'out' }), { code: 'LINK_REFUSED' });
        await assert.rejects(ws.exec('x', { cwd: 'file' }), { code: 'NOT_DIRECTORY' });
        await assert.rejects(ws.exec('x', { cwd: 'nowhere' }), { code: 'NOT_FOUND' });
        await assert.rejects(ws.exec([]), { code: 'INVALID_ARGUMENT' });
        await assert.rejects(ws.exec('x', { env: { 'A=B': '1' } }), { code: 'INVALID_ARGUMENT' });
        await assert.rejects(ws.exec('x', { timeoutMs: 0 }), { code: 'INVALID_ARGUMENT' });
        await assert.rejects(ws.exec('x', { leftover: 'keep' }), { code: 'UNSUPPORTED', message: /spawn\(\)/ });
        assert.equal((await ws.exec('x', { signal: AbortSignal.abort() })).aborted, true);
        assert.equal(executor.calls.length, 0);
        await ws.close();
        await assert.rejects(ws.exec('ls'), { code: 'CLOSED' });
      },
      { executor },
    );
    await withWorkspace(
      async ({ ws }) => {
        await assert.rejects(ws.exec('rm -rf x'), { code: 'POLICY_DENIED' });
        await assert.rejects(ws.spawn('rm -rf x'), { code: 'POLICY_DENIED' });
        await assert.rejects(createShellTool(ws).execute({ command: 'echo; rm x' }), { code: 'POLICY_DENIED' });
        assert.equal(executor.calls.length, 0);
        await createShellTool(ws).execute({ command: 'ls' });
        assert.equal(executor.calls.length, 1, 'and what they allow arrives');
      },
      { executor, commandRules: [{ pattern: 'rm', action: 'deny' }, { pattern: '*', action: 'allow' }] },
    );
  });

  test('a workspace in memory has no directory for one, and an executor without run() is none', () => {
    assert.throws(() => new MemoryWorkspace({ executor: plain() } as never), { code: 'INVALID_ARGUMENT', message: /executor/ });
    assert.throws(() => new NodeWorkspace({ root: tmpdir(), executor: {} as never }), { code: 'INVALID_ARGUMENT', message: /run\(\)/ });
  });
});

describe('what becomes of its answers', () => {
  const shells = {
    executor: async <T>(adapter: SandboxAdapter, use: (shell: { exec: NodeWorkspace['exec'] }) => Promise<T>): Promise<T> => await withWorkspace(async ({ ws }) => await use(ws), { executor: adapter }),
    SandboxShell: async <T>(adapter: SandboxAdapter, use: (shell: { exec: NodeWorkspace['exec'] }) => Promise<T>): Promise<T> => await use(new SandboxShell(adapter, { cwd: realpathSync(tmpdir()) })),
  };

  for (const [name, over] of Object.entries(shells)) {
    test(`output over the budget is cut here when the adapter does not know it (${name})`, async () => {
      await over(plain(() => ({ stdout: `start${'x'.repeat(5000)}end`, stderr: 'short', exitCode: 0, droppedBytes: 5 })), async (shell) => {
        const { stdout, stderr, truncated, droppedBytes } = await shell.exec('x', { maxOutputBytes: 1000 });
        assert.ok(Buffer.byteLength(stdout) <= 1000 && stdout.startsWith('start') && stdout.endsWith('end'), stdout);
        const kept = stdout.replace(/\n?\[\.\.\. \d+ bytes left out \.\.\.\]\n/, '').length;
        assert.deepEqual([stderr, truncated, droppedBytes], ['short', true, 5008 - kept + 5]);
      });
    });

    test(`one budget for both streams is spent in order of arrival (${name})`, async () => {
      const capture = { maxBytes: 6, shared: true, keep: 'head' } as const;
      const live = plain(({ onOutput }) => {
        onOutput?.({ stream: 'stderr', text: 'abcd' });
        onOutput?.({ stream: 'stdout', text: 'efgh' });
        return { stdout: 'efgh', stderr: 'abcd', exitCode: 0 };
      });
      const result = await over(live, async (shell) => await shell.exec('x', { capture }));
      assert.deepEqual([result.stderr, result.stdout, result.droppedBytes, result.truncated], ['abcd', 'ef', 2, true]);
      const mute = await over(plain(() => ({ stdout: 'efgh', stderr: 'abcd', exitCode: 0 })), async (shell) => await shell.exec('x', { capture }));
      assert.deepEqual([mute.stdout, mute.stderr, mute.droppedBytes], ['efgh', 'ab', 2]);
    });

    test(`a failure is a WorkspaceError, and so is an answer that is none (${name})`, async () => {
      const boom = plain(() => {
        throw new TypeError('boom');
      });
      await over(boom, async (shell) => await assert.rejects(shell.exec('x'), { name: 'WorkspaceError', code: 'SANDBOX_UNAVAILABLE', message: /boom/ }));
      for (const answer of [undefined, 'text', {}, { stdout: 1, stderr: '', exitCode: 0 }, { stdout: '', stderr: '', exitCode: '0' }]) {
        await over(plain(() => answer), async (shell) => await assert.rejects(shell.exec('x'), { code: 'SANDBOX_UNAVAILABLE' }));
      }
    });

    test(`an adapter that ignores its signal is not waited for (${name})`, { timeout: 20_000 }, async () => {
      const deaf = plain(() => never);
      await over(deaf, async (shell) => {
        const controller = new AbortController();
        const call = shell.exec('x', { signal: controller.signal });
        await eventually('it was asked', () => deaf.calls.length === 1);
        controller.abort();
        const result = await call;
        assert.deepEqual([result.aborted, result.timedOut, result.exitCode], [true, false, 143]);
      });
    });

    test(`nor is one that ignores its timeout (${name})`, async (t) => {
      const deaf = plain(() => never);
      await over(deaf, async (shell) => {
        t.mock.timers.enable({ apis: ['setTimeout'] });
        const call = shell.exec('x', { timeoutMs: 1000 });
        // The clock is the test's; what looks the directory up is not.
        while (deaf.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
        t.mock.timers.tick(1000 + 60_000);
        const result = await call;
        t.mock.timers.reset();
        assert.deepEqual([result.timedOut, result.aborted], [true, undefined]);
        assert.match(result.note ?? '', /may still be running/);
      });
    });
  }

  test('a listener that throws ends neither Node nor the command', async () => {
    const loud = plain(({ onOutput }) => (onOutput?.({ stream: 'stdout', text: 'x' }), { stdout: 'x', stderr: '', exitCode: 0 }));
    const warned = new Promise((resolve) => process.once('warning', resolve));
    await withWorkspace(
      async ({ ws }) => {
        const onOutput = (): void => {
          throw new Error('boom');
        };
        assert.equal((await ws.exec('x', { onOutput })).stdout, 'x');
      },
      { executor: loud },
    );
    await warned;
  });

  test('the model reads the hint of a sandbox beside the note', async () => {
    const executor = plain(() => ({ stdout: '', stderr: '', exitCode: 137, note: 'A note.', hint: 'Out of memory.' }));
    await withWorkspace(async ({ ws }) => {
      assert.equal((await createShellTool(ws).execute({ command: 'x' })).note, 'A note. Out of memory.');
    }, { executor });
  });

  test('close() ends what runs, is not held up by a deaf adapter, and leaves the adapter open', { timeout: 20_000 }, async () => {
    let closed = 0;
    const executor = { ...plain(() => never), close: async () => void closed++ };
    await withWorkspace(
      async ({ ws }) => {
        const call = ws.exec('x');
        await eventually('it was asked', () => executor.calls.length === 1);
        await ws.close();
        assert.equal((await call).aborted, true);
        assert.equal(executor.calls[0]?.signal?.aborted, true);
      },
      { executor },
    );
    assert.equal(closed, 0);
  });
});

describe('background processes', () => {
  test('an adapter without spawn() is refused with the reason and a way out, and nothing promises one', async () => {
    await withWorkspace(
      async ({ ws }) => {
        assert.deepEqual(ws.capabilities().executor, { kind: 'container', spawn: false });
        await assert.rejects(ws.spawn('x'), { name: 'WorkspaceError', code: 'UNSUPPORTED', message: /no spawn\(\).*foreground/ });
        assert.throws(() => createShellTool(ws, { background: true }), { code: 'INVALID_ARGUMENT', message: /no spawn/ });
        assert.throws(() => createProcessTools(ws), { code: 'INVALID_ARGUMENT' });
        const names = createWorkspaceTools(ws).map(({ name }) => name);
        assert.ok(names.includes('shell') && !names.includes('kill_process'), names.join());
        assert.doesNotMatch(ws.instructions(), /background/);
        await assert.rejects(ws.readProcessOutput('bg-000000'), { code: 'PROCESS_NOT_FOUND' });
      },
      { executor: plain(), mode: 'trusted' },
    );
  });

  test('one that has it is listed, read, reminded of and ended like any other', async () => {
    const executor = spawning();
    await withWorkspace(
      async ({ root, ws }) => {
        assert.deepEqual(ws.capabilities().executor, { kind: 'container', spawn: true });
        assert.ok(createWorkspaceTools(ws).some(({ name }) => name === 'kill_process'));
        assert.match(ws.instructions(), /background/);
        const { id, ...started } = await ws.spawn('serve', { env: { A: '1' } });
        assert.deepEqual(started, { pid: 7, command: 'serve', status: 'running' });
        const { command, args, cwd, env, policy } = executor.started[0]!;
        assert.deepEqual([command, args, cwd, env, policy?.mode], ['sh', ['-c', 'serve'], root, { A: '1' }, 'trusted']);
        assert.deepEqual(await ws.readProcessOutput(id), { output: 'early\n', status: 'running', droppedChars: 0 });
        const waiting = ws.readProcessOutput(id, { waitMs: 20_000 });
        executor.started[0]?.onOutput({ stream: 'stderr', text: 'later\n' });
        assert.equal((await waiting).output, 'later\n');
        assert.match(ws.statusReminder() ?? '', new RegExp(`${id} \\(running\\): serve`));
        assert.deepEqual(await ws.killProcess(id), { output: '', status: 'killed', exitCode: 143, droppedChars: 0 });
        assert.deepEqual(await ws.killProcess(id), { output: '', status: 'killed', exitCode: 143, droppedChars: 0 });
        assert.deepEqual(executor.ended, ['kill']);

        const other = await ws.spawn(['serve', '-p', '1'], { maxOutputChars: 4 });
        executor.started[1]?.onOutput({ stream: 'stdout', text: '0123456789' });
        executor.exit({ exitCode: 137, oomKilled: true, hint: 'Out of memory.' });
        await eventually('it ended', () => ws.backgroundProcesses()[1]?.status === 'exited');
        const last = await ws.readProcessOutput(other.id);
        assert.deepEqual([last.output.length, last.status, last.exitCode, last.droppedChars], [4, 'exited', 137, 6 + 10 + 18 - 4]);
        await ws.spawn('serve');
      },
      { executor, mode: 'trusted' },
    );
    assert.deepEqual(executor.ended, ['kill', 'kill'], 'close() ended the last one');
  });

  test('what an aborted or late start still brings forth is ended', { timeout: 20_000 }, async () => {
    let begin: (() => void) | undefined;
    const ended: string[] = [];
    const slow = {
      ...plain(),
      spawn: async () => {
        await new Promise<void>((resolve) => (begin = resolve));
        return { exited: never, kill: async () => void ended.push('kill') };
      },
    };
    await withWorkspace(
      async ({ ws }) => {
        const controller = new AbortController();
        const starting = ws.spawn('x', { signal: controller.signal });
        const refused = assert.rejects(starting, { code: 'ABORTED' });
        await eventually('it was asked', () => begin !== undefined);
        controller.abort();
        await refused;
        assert.deepEqual(ws.backgroundProcesses(), []);
        begin?.();
        await eventually('it was ended', () => ended.length === 1);
        await assert.rejects(ws.spawn('x', { signal: AbortSignal.abort() }), { code: 'ABORTED' });
      },
      { executor: slow },
    );
  });

  test('an end that cannot be had is an error of killProcess, and close() is not held up by it', async () => {
    const stuck = { ...plain(), spawn: async () => ({ exited: never, kill: async () => Promise.reject(new Error('no such container')) }) };
    await withWorkspace(
      async ({ ws }) => {
        const { id, pid } = await ws.spawn('x');
        assert.equal(pid, 0);
        await assert.rejects(ws.killProcess(id), { code: 'SANDBOX_UNAVAILABLE', message: /no such container/ });
        await ws.spawn('y');
      },
      { executor: stuck },
    );
  });
});

test('git stays on the host, and hooks with it are refused', async () => {
  await withWorkspace(
    async ({ ws }) => {
      assert.throws(() => createGitTools(ws, { runHooks: true }), { code: 'UNSUPPORTED', message: /executor/ });
      await assert.rejects(async () => await createGitTools(ws)[0]!.execute({}), { code: 'GIT_FAILED' });
    },
    { executor: plain() },
  );
});

test('over the host it is as without one', async () => {
  const executor = new NoopSandbox();
  process.env['CROFT_SECRET'] = 'secret';
  await withWorkspace(
    async ({ root, ws }) => {
      const { stdout, exitCode, containment } = await ws.exec('pwd; echo "$A${CROFT_SECRET-none}"; exit 3', { env: { A: 'a' } });
      assert.deepEqual([stdout, exitCode, containment], [`${root}\nanone\n`, 3, ws.capabilities().containment]);
      assert.equal(ws.capabilities().executor?.kind, 'host');
      const mark = uniqueSeconds();
      const { id } = await ws.spawn(`echo up; setsid sleep ${mark} & exec sleep ${mark}`);
      await eventually('both run', () => alive(mark) === 2);
      const killed = await ws.killProcess(id);
      assert.deepEqual([killed.output, killed.status, killed.exitCode, alive(mark)], ['up\n', 'killed', 143, 0]);
      await ws.spawn(`exec sleep ${mark}`);
      await eventually('it runs', () => alive(mark) === 1);
      await ws.close();
      assert.equal(alive(mark), 0);
    },
    { executor },
  );
  delete process.env['CROFT_SECRET'];
  await executor.close();
});

describe('over containers', withEngine, () => {
  async function withContainers<T>(use: (at: { root: string; ws: NodeWorkspace; labels: Record<string, string> }) => Promise<T>, options: Partial<SubprocessSandboxOptions> = {}): Promise<T> {
    const labels = uniqueLabel();
    const executor = new SubprocessSandbox({ image: IMAGE, labels, ...options });
    try {
      return await withWorkspace(async ({ root, ws }) => await use({ root, ws, labels }), { executor, env: { A: '1' } });
    } finally {
      await executor.close();
      assert.deepEqual(await containersOf(labels), [], 'close() left a container');
    }
  }

  test('a command sees the workspace and nothing else of the host', async () => {
    await withContainers(async ({ root, ws }) => {
      mkdirSync(join(root, 'sub'));
      await ws.writeFile('file', 'from the file tool');
      const { stdout, containment } = await ws.exec('pwd; cat ../file; echo; echo "$A ${USER-nobody}"; echo back > made; ls /home', { cwd: 'sub' });
      assert.deepEqual([stdout, containment], [`${root}/sub\nfrom the file tool\n1 nobody\n`, 'container']);
      assert.equal(await ws.readFile('sub/made'), 'back\n');
    });
  });

  for (const reuse of ['command', 'pool', 'session'] as const) {
    test(`a server runs on, is read, reminded of and ended (${reuse})`, async () => {
      await withContainers(
        async ({ ws, labels }) => {
          const mark = uniqueSeconds();
          const { id, pid } = await ws.spawn(`echo up; setsid sleep ${mark} & exec sleep ${mark}`);
          assert.ok(pid > 0);
          assert.equal((await ws.readProcessOutput(id, { waitMs: 20_000 })).output, 'up\n');
          assert.match(ws.statusReminder() ?? '', /running/);
          assert.equal((await ws.exec('echo beside')).stdout, 'beside\n');
          await eventually('both run', () => alive(mark) === 2);
          const killed = await ws.killProcess(id);
          assert.deepEqual([killed.status, killed.exitCode, alive(mark)], ['killed', 143, 0]);
          const other = await ws.spawn('sleep 0.2; echo done; exit 4');
          await eventually('it ended', () => ws.backgroundProcesses()[1]?.status === 'exited', 20_000);
          assert.deepEqual(await ws.readProcessOutput(other.id), { output: 'done\n', status: 'exited', exitCode: 4, droppedChars: 0 });
          await ws.spawn(`exec sleep ${mark}`);
          await eventually('it runs', () => alive(mark) === 1, 20_000);
          await ws.close();
          assert.equal(alive(mark), 0);
          // The containers that wait, and the session's, are the sandbox's: they stay until it is closed.
          if (reuse === 'command') await eventually('its container is gone', async () => (await containersOf(labels)).length === 0);
        },
        { reuse },
      );
    });
  }

  test('in a session a command reaches the port of what was started before', async () => {
    await withContainers(
      async ({ ws }) => {
        await ws.writeFile('index.html', 'served');
        const { id } = await ws.spawn('exec httpd -f -p 127.0.0.1:8080');
        const { stdout } = await ws.exec('for i in 1 2 3 4 5 6 7 8 9; do wget -q -O - http://127.0.0.1:8080/ && break; sleep 0.2; done', { timeoutMs: 20_000 });
        assert.equal(stdout, 'served');
        assert.equal((await ws.killProcess(id)).status, 'killed');
      },
      { reuse: 'session' },
    );
  });

  test('what cannot be started says why, and without our init nothing is kept', async () => {
    await withContainers(async ({ ws }) => {
      await assert.rejects(ws.spawn(['no-such-program']), { code: 'SPAWN_FAILED', message: /no-such-program/ });
      await assert.rejects(ws.spawn('true', { signal: AbortSignal.abort() }), { code: 'ABORTED' });
      assert.deepEqual(ws.backgroundProcesses(), []);
    });
    await withContainers(async ({ ws }) => await assert.rejects(ws.spawn('true'), { code: 'SANDBOX_UNAVAILABLE', message: /background/ }), { transport: 'attach' });
  });

  test('SIGKILL to Node ends a background process and its container', async () => {
    const labels = uniqueLabel();
    const mark = uniqueSeconds();
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'croft-executor-')));
    const script = `
      import { NodeWorkspace, SubprocessSandbox } from 'croft';
      const executor = new SubprocessSandbox({ image: '${IMAGE}', labels: ${JSON.stringify(labels)} });
      const ws = new NodeWorkspace({ root: process.argv[1], executor });
      await ws.spawn('setsid sleep ${mark} & exec sleep ${mark}');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script, root], { cwd: PACKAGE, stdio: 'inherit' });
    await eventually('it runs', () => alive(mark) === 2, 30_000);
    child.kill('SIGKILL');
    await eventually('its container is gone', async () => (await containersOf(labels)).length === 0 && alive(mark) === 0, 20_000);
    rmSync(root, { recursive: true });
  });

  test('a background process does not keep Node alive, and ends with it', async () => {
    const labels = uniqueLabel();
    const mark = uniqueSeconds();
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'croft-executor-')));
    const script = `
      import { NodeWorkspace, SubprocessSandbox } from 'croft';
      const executor = new SubprocessSandbox({ image: '${IMAGE}', labels: ${JSON.stringify(labels)} });
      const ws = new NodeWorkspace({ root: process.argv[1], executor });
      const { id } = await ws.spawn('echo up; exec sleep ${mark}');
      process.stdout.write((await ws.readProcessOutput(id, { waitMs: 20000 })).output);`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script, root], { cwd: PACKAGE, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    const code = await new Promise((resolve) => child.once('close', resolve));
    assert.deepEqual([code, output], [0, 'up\n']);
    await eventually('its container is gone', async () => (await containersOf(labels)).length === 0 && alive(mark) === 0, 20_000);
    rmSync(root, { recursive: true });
  });
});
