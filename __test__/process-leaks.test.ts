// What many commands leave behind: nothing. Each check runs in a Node process of its own, so that nothing else counts.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { alive, eventually, freshNode, PACKAGE, uniqueSeconds } from './support/processes.js';

const linux = { skip: process.platform !== 'linux' && 'counts in /proc', timeout: 120_000 };

const PRELUDE = `
  import { readdirSync, readFileSync } from 'node:fs';
  import { NodeWorkspace } from 'croft';
  const ws = new NodeWorkspace({ root: '/tmp' });
  const children = () => readdirSync('/proc/self/task')
    .flatMap((task) => readFileSync('/proc/self/task/' + task + '/children', 'utf8').split(' ').filter(Boolean)).length;
  const held = () => ({ descriptors: readdirSync('/proc/self/fd').length, threads: readdirSync('/proc/self/task').length, children: children() });
  const settled = async (wanted) => {
    for (let count = 0; count < 500 && JSON.stringify(held()) !== JSON.stringify(wanted); count++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return held();
  };`;

test('1,000 commands in a row and 50 at once leave no zombie, descriptor or thread', linux, () => {
  const script = `${PRELUDE}
    const fifty = async () => {
      for (const { stdout, exitCode } of await Promise.all(Array.from({ length: 50 }, () => ws.exec('printf x')))) {
        if (stdout !== 'x' || exitCode !== 0) throw new Error(stdout + exitCode);
      }
    };
    await fifty();
    await new Promise((resolve) => setTimeout(resolve, 500));
    const before = held();
    for (let count = 0; count < 1000; count++) {
      const { stdout } = await ws.exec(count % 10 ? 'printf x' : 'sleep 0.001 & printf x');
      if (stdout !== 'x') throw new Error(stdout);
    }
    await fifty();
    console.log(JSON.stringify({ before, after: await settled(before) }));`;
  const { stdout, stderr } = freshNode(script);
  const { before, after } = JSON.parse(stdout || '{}') as { before?: object; after?: object };
  assert.ok(before, stderr);
  assert.deepEqual(after, before);
});

for (const whom of ['Node', "Node's whole process group"]) {
  test(`no command survives kill -9 of ${whom}`, linux, async () => await killedWithCommands(whom !== 'Node'));
}

async function killedWithCommands(group: boolean): Promise<void> {
  const mark = uniqueSeconds();
  const script = `${PRELUDE}
    for (let count = 0; count < 15; count++) {
      void ws.exec('sleep ${mark} & setsid sleep ${mark} & sleep ${mark}');
      void ws.exec("trap '' TERM; (setsid sh -c 'sleep ${mark} & exit' &); sleep ${mark}; sleep ${mark}");
    }
    await ws.spawn('setsid sleep ${mark} & sleep ${mark}');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { cwd: PACKAGE, stdio: 'inherit', detached: true });
  await eventually('all of them run', () => alive(mark) >= 77);
  process.kill(group ? -Number(child.pid) : Number(child.pid), 'SIGKILL');
  await once(child, 'exit');
  await eventually('none is left', () => alive(mark) === 0, 2000);
}

test('200 background floods keep to constant memory, keep their ids and their own output, and end with close', linux, () => {
  const mark = uniqueSeconds();
  const script = `${PRELUDE}
    const ids = new Map();
    for (let count = 0; count < 200; count++) {
      const word = 'flood-' + count;
      const { id } = await ws.spawn("sh -c 'text=$(yes " + word + " | head -500); while :; do echo \\"$text\\"; sleep 0.2; done' ${mark} & exec sleep ${mark}");
      ids.set(id, word);
    }
    globalThis.gc();
    const before = process.memoryUsage.rss();
    await ws.exec('sleep 3');
    globalThis.gc();
    const growth = process.memoryUsage.rss() - before;
    const listed = ws.backgroundProcesses().filter(({ status, id }) => status === 'running' && ids.has(id)).length;
    // The first and last line of what was kept may be cut.
    const ownOnly = async ([id, word]) => {
      const lines = (await ws.readProcessOutput(id)).output.split('\\n').slice(1, -1);
      return lines.length > 0 && lines.every((line) => line === word);
    };
    const own = (await Promise.all([...ids].map(ownOnly))).filter(Boolean).length;
    await ws.close();
    console.log(JSON.stringify({ ids: ids.size, listed, own, growth }));`;
  const { stdout, stderr } = freshNode(script, { NODE_OPTIONS: '--expose-gc' });
  const { ids, listed, own, growth } = JSON.parse(stdout || '{}') as Record<string, number>;
  assert.deepEqual([ids, listed, own], [200, 200, 200], stderr);
  // 200 x 30,000 characters at most, and what the allocator keeps.
  assert.ok(growth !== undefined && growth < 30_000_000, `grew by ${growth} bytes`);
  assert.equal(alive(mark), 0);
});

test('closing and ending Node in the middle of a command lets Node end', linux, () => {
  const started = Date.now();
  const script = `${PRELUDE}
    void ws.exec('sleep 1000');
    await ws.spawn('sleep 1000');
    await ws.close();
    console.log('closed');`;
  const { stdout, status } = freshNode(script);
  assert.deepEqual([stdout, status], ['closed\n', 0]);
  const exits = freshNode(`${PRELUDE} void ws.exec('sleep 1000'); await ws.spawn('sleep 1000'); process.exit(7);`);
  assert.equal(exits.status, 7);
  assert.ok(Date.now() - started < 30_000);
});

test("a terminated worker's commands end with it, and its environment is its own", linux, async () => {
  const mark = uniqueSeconds();
  const text = `const { parentPort } = require('node:worker_threads');
    const { NodeWorkspace } = require('croft');
    const ws = new NodeWorkspace({ root: '/tmp', inheritEnv: ['MINE'] });
    void ws.exec('sleep ${mark}', { onOutput() {} });
    void ws.exec('exec yes ${mark}', { onOutput() {} });
    ws.spawn('setsid sleep ${mark} & exec sleep ${mark}').then(() => ws.exec('echo $MINE')).then(({ stdout }) => parentPort.postMessage(stdout));`;
  const worker = new Worker(text, { eval: true, env: { PATH: process.env['PATH'], MINE: 'of the worker' } });
  const [said] = (await once(worker, 'message')) as [string];
  assert.equal(said, 'of the worker\n');
  await eventually('all run', () => alive(mark) === 4);
  await worker.terminate();
  await eventually('none is left', () => alive(mark) === 0);
});

test('without a free descriptor a command is refused, and runs again once there is one', linux, () => {
  const script = `${PRELUDE}
    import { closeSync, openSync } from 'node:fs';
    await ws.exec('true');
    const files = [];
    try { for (;;) files.push(openSync('/dev/null')); } catch {}
    const codes = new Set();
    let ran;
    for (let count = 0; count < 30 && !ran; count++) {
      await ws.exec('echo ran', { input: 'x' }).then(({ stdout }) => (ran = stdout), ({ name, code }) => codes.add(name + ' ' + code));
      closeSync(files.pop());
    }
    console.log(JSON.stringify({ codes: [...codes], ran }));`;
  const { stdout, stderr } = freshNode(script, {}, ['sh', '-c', 'ulimit -n 200; exec "$@"', 'sh']);
  assert.deepEqual(JSON.parse(stdout || '{}'), { codes: ['WorkspaceError TOO_MANY_OPEN_FILES'], ran: 'ran\n' }, stderr);
});
