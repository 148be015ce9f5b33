// While another process exchanges a directory and a link to outside, every operation runs against it: nothing outside
// is ever read, written, named or entered. CROFT_RACE_SECONDS sets the time for each operation.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createFsTools, NodeWorkspace, WorkspaceError, type Tool } from 'croft';
import { whileSwapping } from './support/swap.js';

const SECONDS = Number(process.env['CROFT_RACE_SECONDS'] ?? 1);
const SECRET = 'OUTSIDE-SECRET';
const denied = process.env['CROFT_TEST_OPENAT2_DENIED'];
const self = fileURLToPath(import.meta.url);

interface Field {
  tmp: string;
  outside: string;
  workspace: NodeWorkspace;
  tools: Record<string, Tool>;
}

/** `d` is a directory inside, `l` a link to a directory outside with the same names in it. */
function field(): Field {
  const tmp = mkdtempSync(join(tmpdir(), 'croft-race-'));
  const root = join(tmp, 'ws');
  const outside = join(tmp, 'out');
  for (const [directory, text] of [[join(root, 'd'), 'IN'], [outside, SECRET]] as const) {
    mkdirSync(join(directory, 'sub'), { recursive: true });
    writeFileSync(join(directory, 'f.txt'), `${text}\n`);
    writeFileSync(join(directory, 'sub', 'g.txt'), `${text}\n`);
  }
  writeFileSync(join(outside, 'only-outside.txt'), `${SECRET}\n`);
  symlinkSync(outside, join(root, 'l'));
  const workspace = new NodeWorkspace({ root });
  const tools = Object.fromEntries(createFsTools(workspace).map((tool) => [tool.name, tool]));
  return { tmp, outside, workspace, tools };
}

function contents(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true });
  return Object.fromEntries(names.map((entry) => [join(entry.parentPath, entry.name), entry.isFile() ? readFileSync(join(entry.parentPath, entry.name), 'utf8') : '']));
}

type Operation = (field: Field, round: number) => Promise<unknown>;

const tool = (name: string, input: object): Operation => async ({ tools }) => await tools[name]?.execute(input);

const OPERATIONS: Record<string, Operation> = {
  'read': async ({ workspace }) => await workspace.readFile('d/f.txt'),
  'read bytes': async ({ workspace }) => (await workspace.readFileBytes('d/sub/g.txt')).toString(),
  'read_file': tool('read_file', { path: 'd/f.txt' }),
  'stat': async ({ workspace }) => await workspace.stat('d/only-outside.txt'),
  'list': async ({ workspace }) => await workspace.readdir('d'),
  'list_dir, recursive': tool('list_dir', { path: 'd', recursive: true }),
  'glob': tool('glob', { pattern: 'd/**' }),
  'glob below': tool('glob', { pattern: '*', path: 'd' }),
  'grep': tool('grep', { pattern: 'SECRET', path: 'd' }),
  'write': async ({ workspace }, round) => await workspace.writeFile('d/f.txt', `IN ${round}\n`),
  'create': async ({ workspace }, round) => await workspace.writeFile(`d/new${round % 50}.txt`, 'IN\n'),
  'edit': async ({ workspace }) => await workspace.editFile('d/f.txt', { oldString: 'IN', newString: 'IN' }),
  'edit that changes': async ({ workspace }, round) => await workspace.editFile('d/sub/g.txt', round % 2 ? { oldString: 'IN', newString: 'ON' } : { oldString: 'ON', newString: 'IN' }),
  'edit of the secret': async ({ workspace }) => await workspace.editFile('d/f.txt', { oldString: SECRET, newString: 'STOLEN' }),
  'mkdir': async ({ workspace }, round) => await workspace.mkdir(`d/m${round % 50}/n`),
  'rm': async ({ workspace }) => await workspace.rm('d/only-outside.txt'),
  'rm, recursive': async ({ workspace }) => await workspace.rm('d/sub', { recursive: true }),
  'rename away': async ({ workspace }, round) => await workspace.rename('d/only-outside.txt', `taken${round}.txt`),
  'rename into': async ({ workspace }, round) => {
    await workspace.writeFile(`moving${round % 5}.txt`, 'IN\n');
    await workspace.rename(`moving${round % 5}.txt`, `d/moved${round % 5}.txt`, { overwrite: true });
  },
};

if (denied) {
  for (const [name, operation] of Object.entries(OPERATIONS)) test(name, async () => await attack(name, operation));
  test('cwd of a command', async () => await attackCwd());
} else {
  for (const [name, operation] of Object.entries(OPERATIONS)) test(`openat2: ${name}`, async () => await attack(name, operation));
  test('openat2: cwd of a command', async () => await attackCwd());
  test('the same with the component walk', runDenied);
}

async function attack(name: string, operation: Operation): Promise<void> {
  const scene = field();
  const before = contents(scene.outside);
  let tried = 0;
  let succeeded = 0;
  try {
    await whileSwapping(join(scene.workspace.root, 'd'), join(scene.workspace.root, 'l'), SECONDS, async () => {
      const batch = Array.from({ length: 8 }, async () => {
        const answer = await outcome(operation, scene, tried++);
        if (answer.ok) succeeded++;
        assert.ok(!answer.text.includes(SECRET) && !answer.text.includes('only-outside'), `${name} leaked: ${answer.text}`);
      });
      await Promise.all(batch);
    });
    assert.deepEqual(contents(scene.outside), before, `${name} changed something outside`);
    assert.ok(tried > 100, `only ${tried} tries`);
    console.log(`# ${name}: ${tried} tries, ${succeeded} answered, 0 outside`);
  } finally {
    await scene.workspace.close();
    rmSync(scene.tmp, { recursive: true, force: true });
  }
}

/** Whatever is said counts, a refusal too; it may quote the caller's own words, which are not a leak. */
async function outcome(operation: Operation, scene: Field, round: number): Promise<{ ok: boolean; text: string }> {
  try {
    return { ok: true, text: JSON.stringify((await operation(scene, round)) ?? null) };
  } catch (error) {
    assert.ok(error instanceof WorkspaceError, String(error));
    assert.notEqual(error.code, 'INTERNAL', error.message);
    assert.ok(!error.message.includes(scene.tmp), error.message);
    return { ok: false, text: error.message.replaceAll(/"[^"]*"/g, '') };
  }
}

async function attackCwd(): Promise<void> {
  const scene = field();
  try {
    let inside = 0;
    await whileSwapping(join(scene.workspace.root, 'd'), join(scene.workspace.root, 'l'), SECONDS, async () => {
      try {
        const { stdout } = await scene.workspace.exec('cat f.txt; ls', { cwd: 'd', timeoutMs: 5000 });
        assert.ok(!stdout.includes(SECRET) && !stdout.includes('only-outside'), stdout);
        inside++;
      } catch (error) {
        assert.ok(error instanceof WorkspaceError, String(error));
      }
    });
    assert.ok(!existsSync(join(scene.outside, 'new')) && inside > 0);
  } finally {
    await scene.workspace.close();
    rmSync(scene.tmp, { recursive: true, force: true });
  }
}

function runDenied(): void {
  const launcher = fileURLToPath(new URL('../target/debug/examples/deny_openat2', import.meta.url));
  const env: NodeJS.ProcessEnv = { ...process.env, CROFT_TEST_OPENAT2_DENIED: 'ENOSYS' };
  delete env['NODE_TEST_CONTEXT'];
  const run = spawnSync(launcher, ['ENOSYS', process.execPath, '--test-reporter=tap', self], { env, encoding: 'utf8', maxBuffer: 1 << 28 });
  const failures = run.stdout.split('\n').filter((line) => /not ok|leaked|outside$/.test(line));
  assert.equal(run.status, 0, failures.join('\n') + run.stderr);
  assert.match(run.stdout, new RegExp(`^# pass ${Object.keys(OPERATIONS).length + 1}$`, 'm'));
  console.log(run.stdout.split('\n').filter((line) => line.includes('0 outside')).join('\n'));
}
