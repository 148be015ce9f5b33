// Processes that run on: the workspace's methods, and the tools a model uses for them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createProcessTools, createShellTool, MemoryWorkspace, type ProcessOutput, type ShellToolStarted } from 'croft';
import { alive, eventually, uniqueSeconds, withWorkspace, type Scratch } from './support/processes.js';

const linux = { skip: process.platform !== 'linux' && 'looks for survivors in /proc' };
const LONG = { waitMs: 20_000 };

async function readAll({ ws }: Scratch, id: string): Promise<ProcessOutput> {
  let text = '';
  for (;;) {
    const read = await ws.readProcessOutput(id, LONG);
    text += read.output;
    if (read.status !== 'running') return { ...read, output: text };
  }
}

describe('the workspace', linux, () => {
  test('a process is told about until its end has been read once', async () => {
    await withWorkspace(async (scratch) => {
      const { ws } = scratch;
      assert.equal(ws.statusReminder(), undefined);
      const started = await ws.spawn('cat; echo out; echo err >&2; exit 5', { env: { A: '1' } });
      assert.match(started.id, /^bg-[0-9a-f]{6}$/);
      assert.equal(started.command, 'cat; echo out; echo err >&2; exit 5');
      await eventually('it ended', () => ws.backgroundProcesses()[0]?.status === 'exited');
      assert.match(ws.statusReminder() ?? '', new RegExp(`${started.id} \\(exited with code 5\\), not read yet: cat; echo out`));
      const read = await readAll(scratch, started.id);
      assert.deepEqual([...read.output.split('\n')].sort(), ['', 'err', 'out']);
      assert.deepEqual({ ...read, output: '' }, { output: '', status: 'exited', exitCode: 5, droppedChars: 0 });
      assert.equal(ws.statusReminder(), undefined);
      assert.equal(ws.backgroundProcesses().length, 1);
    });
  });

  test('killing ends what left the group too, and may be repeated', async () => {
    await withWorkspace(async ({ ws }) => {
      const mark = uniqueSeconds();
      const { id } = await ws.spawn(`echo hi; setsid sleep ${mark} & exec sleep ${mark}`);
      await eventually('both run', () => alive(mark) === 2);
      const killed = await ws.killProcess(id);
      assert.deepEqual([killed.output, killed.status, killed.exitCode], ['hi\n', 'killed', 143]);
      assert.equal(alive(mark), 0);
      assert.deepEqual(await ws.killProcess(id), { output: '', status: 'killed', exitCode: 143, droppedChars: 0 });
    });
  });

  test('what cannot be is refused by name', async () => {
    await withWorkspace(async ({ ws }) => {
      const { id } = await ws.spawn('sleep 1000');
      await assert.rejects(ws.readProcessOutput('bg-zzz'), { code: 'PROCESS_NOT_FOUND', message: new RegExp(`${id} \\(running\\)`) });
      await assert.rejects(ws.killProcess('bg-zzz'), { code: 'PROCESS_NOT_FOUND' });
      await assert.rejects(ws.readProcessOutput(id, { waitMs: -1 }), { code: 'INVALID_ARGUMENT' });
      await assert.rejects(ws.spawn('x', { cwd: 'nowhere' }), { code: 'NOT_FOUND' });
      await assert.rejects(ws.spawn('x', { cwd: '../..' }), { code: 'OUTSIDE_WORKSPACE' });
      await assert.rejects(ws.spawn(['no-such-program']), { code: 'SPAWN_FAILED' });
      await assert.rejects(ws.spawn('x', { signal: AbortSignal.abort() }), { code: 'ABORTED' });
      const controller = new AbortController();
      const waiting = ws.readProcessOutput(id, { waitMs: 60_000, signal: controller.signal });
      controller.abort();
      await assert.rejects(waiting, { code: 'ABORTED' });
      await ws.close();
      await assert.rejects(ws.spawn('true'), { code: 'CLOSED' });
      await assert.rejects(ws.readProcessOutput(id), { name: 'WorkspaceClosedError' });
      assert.throws(() => ws.backgroundProcesses(), { code: 'CLOSED' });
    });
  });

  test('a leftover that may stay is the workspace\'s, and ends with it', async () => {
    const mark = uniqueSeconds();
    await withWorkspace(async (scratch) => {
      const { ws } = scratch;
      const result = await ws.exec(`(sleep 0.3; echo later; exec sleep ${mark}) & echo now`, { leftover: 'keep' });
      assert.deepEqual([result.stdout, result.exitCode], ['now\n', 0]);
      const [kept] = ws.backgroundProcesses();
      assert.ok(kept && result.note?.includes(kept.id), result.note);
      assert.equal((await ws.readProcessOutput(kept.id, LONG)).output, 'later\n');
      await eventually('it runs', () => alive(mark) === 1);
    });
    assert.equal(alive(mark), 0);
  });
});

describe('the tools', linux, () => {
  test('a server is started, read and ended by the model', async () => {
    await withWorkspace(async ({ ws }) => {
      const shell = createShellTool(ws, { needsApproval: false, background: true });
      const [read, kill] = createProcessTools(ws);
      assert.deepEqual([read?.name, kill?.name], ['read_process_output', 'kill_process']);
      const answer = await shell.execute({ command: "printf '\\033[32mready\\033[0m\\n'; exec sleep 1000", background: true });
      const { processId, note } = answer as ShellToolStarted;
      assert.match(note, /read_process_output/);
      assert.deepEqual(await read?.execute({ process_id: processId, wait_ms: 20_000 }), { status: 'running', output: 'ready\n' });
      assert.deepEqual(await read?.execute({ process_id: processId, wait_ms: null as never }), { status: 'running', output: '' });
      assert.deepEqual(await kill?.execute({ process_id: processId }), { status: 'killed', exitCode: 143, output: '' });
      await assert.rejects(async () => await read?.execute({ process_id: 'bg-000000' }), { code: 'PROCESS_NOT_FOUND' });
    });
  });

  test('rules and approval hold in the background as in the foreground', async () => {
    await withWorkspace(async ({ ws }) => {
      const shell = createShellTool(ws, { background: true, deny: ['rm'] });
      assert.equal(await shell.needsApproval({ command: 'npm start', background: true }), true);
      await assert.rejects(shell.execute({ command: 'rm x', background: true }), { code: 'POLICY_DENIED' });
      assert.deepEqual(ws.backgroundProcesses(), []);
    });
  });

  test('without the option there is no such argument, and a shell that cannot is refused when the tool is made', async () => {
    await withWorkspace(async ({ ws }) => {
      const answer = await createShellTool(ws, { needsApproval: false }).execute({ command: 'echo x', background: true });
      assert.equal(answer.stdout, 'x\n');
    });
    const memory = new MemoryWorkspace();
    assert.throws(() => createShellTool(memory as never, { background: true }), { code: 'INVALID_ARGUMENT' });
    assert.throws(() => createProcessTools(memory as never), { code: 'INVALID_ARGUMENT' });
  });
});
