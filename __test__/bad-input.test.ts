// Bad input gets a clear typed error and loses nothing: on disk, and in memory where it can happen there.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createFsTools, createShellTool, formatPage, MemoryWorkspace, NodeWorkspace, normalizeWorkspacePath, WorkspaceError, type WorkspaceErrorCode } from 'croft';

const self = fileURLToPath(import.meta.url);
const isRoot = process.getuid?.() === 0;

function code(expected: WorkspaceErrorCode, words?: RegExp) {
  return (error: unknown): true => {
    assert.ok(error instanceof WorkspaceError, String(error));
    assert.equal(error.code, expected, error.message);
    if (words) assert.match(error.message, words);
    return true;
  };
}

/** `as never`: JavaScript callers are not held by the types. */
const wrong = (value: unknown): never => value as never;

if (process.argv[2] === 'few-descriptors') await withFewDescriptors();
else suite();

function suite(): void {
  let tmp: string;
  let root: string;
  before(() => {
    tmp = mkdtempSync(join(tmpdir(), 'croft-bad-'));
    root = join(tmp, 'ws');
    mkdirSync(root);
    writeFileSync(join(root, 'a.txt'), 'one\ntwo\nthree\n');
    writeFileSync(join(tmp, 'file'), '');
  });
  after(() => rmSync(tmp, { recursive: true, force: true }));

  describe('options', () => {
    test('a bad root', () => {
      assert.throws(() => new NodeWorkspace({ root: join(tmp, 'missing') }), code('NOT_FOUND', /missing/));
      assert.throws(() => new NodeWorkspace({ root: join(tmp, 'file') }), code('NOT_DIRECTORY'));
      assert.throws(() => new NodeWorkspace({ root: '' }), code('INVALID_ARGUMENT', /root/));
      assert.throws(() => new NodeWorkspace(wrong({})), code('INVALID_ARGUMENT', /root/));
      assert.throws(() => new NodeWorkspace(wrong(undefined)), code('INVALID_ARGUMENT'));
    });
    test('an unknown or ill-typed option', () => {
      assert.throws(() => new NodeWorkspace(wrong({ root, rooot: 1 })), code('INVALID_ARGUMENT', /rooot/));
      assert.throws(() => new NodeWorkspace(wrong({ root, symlinks: 'yes' })), code('INVALID_ARGUMENT', /symlinks/));
      assert.throws(() => new MemoryWorkspace(wrong({ fles: {} })), code('INVALID_ARGUMENT', /fles/));
      assert.throws(() => createFsTools(new MemoryWorkspace(), wrong({ maxReadLines: 0 })), code('INVALID_ARGUMENT', /maxReadLines/));
      assert.throws(() => createShellTool(new MemoryWorkspace(), wrong({ defaultTimeoutMs: NaN })), code('INVALID_ARGUMENT', /defaultTimeoutMs/));
      assert.throws(() => createShellTool(new MemoryWorkspace(), { allow: [''] }), code('INVALID_ARGUMENT', /allow/));
    });
  });

  describe('arguments', () => {
    for (const kind of ['disk', 'memory'] as const) {
      const open = () => (kind === 'disk' ? new NodeWorkspace({ root }) : new MemoryWorkspace({ files: { 'a.txt': 'one\ntwo\nthree\n' } }));
      test(`paths that are no paths, ${kind}`, async () => {
        const workspace = open();
        for (const path of [null, undefined, 5, {}, ['a.txt']]) await assert.rejects(workspace.readFile(wrong(path)), code('INVALID_ARGUMENT', /path/));
        await assert.rejects(workspace.readFile('a.txt\0'), code('INVALID_PATH'));
        await assert.rejects(workspace.readFile('\ud800'), code('INVALID_ARGUMENT', /surrogate/));
        await assert.rejects(workspace.readFile('x'.repeat(256)), code('INVALID_PATH'));
        await assert.rejects(workspace.readFile('x/'.repeat(2100)), code('INVALID_PATH'));
        await assert.rejects(workspace.readFile('/etc/passwd'), code('OUTSIDE_WORKSPACE'));
        await assert.rejects(workspace.writeFile('b.txt', wrong(null)), code('INVALID_ARGUMENT', /content/));
        await assert.rejects(workspace.writeFile('b.txt', '\udfff'), code('INVALID_ARGUMENT', /surrogate/));
        await assert.rejects(workspace.writeFile('b.txt', 'x', { createOnly: wrong('yes') }), code('INVALID_ARGUMENT'));
        await assert.rejects(workspace.glob('*', { maxResults: wrong('many') }), code('INVALID_ARGUMENT'));
        await assert.rejects(workspace.glob('*', { ignore: wrong([1]) }), code('INVALID_ARGUMENT'));
        await assert.rejects(workspace.grep('x', { context: wrong(-1) }), code('INVALID_ARGUMENT', /context/));
        await assert.rejects(workspace.rename('a.txt', wrong(7)), code('INVALID_ARGUMENT', /to/));
        await assert.rejects(workspace.rm('.'), code('INVALID_ARGUMENT', /root/));
        await assert.rejects(workspace.editFile('a.txt', wrong(null)), code('INVALID_ARGUMENT'));
        assert.equal(await workspace.readFile('a.txt'), 'one\ntwo\nthree\n');
        assert.equal(await workspace.stat('b.txt'), undefined);
      });
      test(`numbers that are no line numbers, ${kind}`, async () => {
        const workspace = open();
        for (const offset of [NaN, -1, 0, 1.5, Infinity, -Infinity]) await assert.rejects(workspace.readPage('a.txt', { offset }), code('INVALID_ARGUMENT', /offset/));
        await assert.rejects(workspace.readPage('a.txt', { offset: 2 ** 32 }), code('OFFSET_PAST_END', /3 lines/));
        await assert.rejects(workspace.readPage('a.txt', { offset: 2 ** 32 + 1 }), code('OFFSET_PAST_END', /3 lines/));
        await assert.rejects(workspace.readPage('a.txt', { limit: NaN }), code('INVALID_ARGUMENT', /limit/));
        assert.equal((await workspace.readPage('a.txt', { offset: 3 })).firstLine, 3);
      });
      test(`an aborted signal starts nothing, ${kind}`, async () => {
        const workspace = open();
        const signal = AbortSignal.abort(new Error('enough'));
        await assert.rejects(workspace.writeFile('c.txt', 'x', { signal }), code('ABORTED'));
        await assert.rejects(workspace.readFile('a.txt', { signal }), (error: WorkspaceError) => error.cause instanceof Error && error.cause.message === 'enough');
        for (const name of ['glob', 'grep'] as const) await assert.rejects(workspace[name]('x', { signal }), code('ABORTED'));
        for (const tool of createFsTools(workspace)) {
          const input = { path: 'c.txt', pattern: 'x', content: 'x', old_string: 'x', new_string: 'y' };
          await assert.rejects(tool.execute(input, { signal }), code('ABORTED'), tool.name);
        }
        assert.equal(await workspace.stat('c.txt'), undefined);
      });
      test(`a closed workspace answers nothing, ${kind}`, async () => {
        const workspace = open();
        await workspace.close();
        await workspace.close();
        await assert.rejects(workspace.readFile('a.txt'), { name: 'WorkspaceClosedError', code: 'CLOSED' });
        await assert.rejects(workspace.exec('true'), { name: 'WorkspaceClosedError' });
        for (const tool of createFsTools(workspace)) {
          await assert.rejects(tool.execute({ path: 'a.txt', pattern: 'x', content: 'x', old_string: 'x', new_string: 'y' }), code('CLOSED'), tool.name);
        }
      });
    }
    test('the pure functions check their arguments too', () => {
      assert.throws(() => normalizeWorkspacePath(wrong(1)), code('INVALID_ARGUMENT'));
      assert.throws(() => normalizeWorkspacePath('a', wrong('beos')), code('INVALID_ARGUMENT'));
      assert.throws(() => formatPage('a', { offset: NaN }), code('INVALID_ARGUMENT'));
    });
  });

  describe('things that are no files', { skip: process.platform === 'win32' }, () => {
    test('a FIFO is refused at once by every operation', async () => {
      execFileSync('mkfifo', [join(root, 'pipe')]);
      const workspace = new NodeWorkspace({ root });
      await assert.rejects(workspace.readFile('pipe'), code('NOT_REGULAR_FILE'));
      await assert.rejects(workspace.readPage('pipe'), code('NOT_REGULAR_FILE'));
      await assert.rejects(workspace.writeFile('pipe', 'x'), code('NOT_REGULAR_FILE'));
      await assert.rejects(workspace.editFile('pipe', { oldString: 'a', newString: 'b' }), code('NOT_REGULAR_FILE'));
      await assert.rejects(workspace.grep('x', { path: 'pipe' }), WorkspaceError);
      assert.ok((await workspace.glob('**')).paths.includes('a.txt'));
      await workspace.rm('pipe');
    });
    test('a FIFO named .gitignore does not hang a walk', async () => {
      mkdirSync(join(root, 'trap'));
      execFileSync('mkfifo', [join(root, 'trap/.gitignore')]);
      writeFileSync(join(root, 'trap/in.txt'), 'needle\n');
      const found = await new NodeWorkspace({ root }).grep('needle', { path: 'trap' });
      assert.deepEqual(found.matches.map(({ path }) => path), ['trap/in.txt']);
      rmSync(join(root, 'trap'), { recursive: true });
    });
    test('a sparse file of 3 GB', async () => {
      writeFileSync(join(root, 'huge'), 'needle\n');
      truncateSync(join(root, 'huge'), 3 * 1024 ** 3);
      const workspace = new NodeWorkspace({ root });
      const before = process.memoryUsage.rss();
      await assert.rejects(workspace.readFile('huge'), code('TOO_LARGE', /3221225472/));
      await assert.rejects(workspace.readFileBytes('huge'), code('TOO_LARGE'));
      await assert.rejects(workspace.readPage('huge'), code('TOO_LARGE'));
      await assert.rejects(workspace.editFile('huge', { oldString: 'needle', newString: 'x' }), code('TOO_LARGE'));
      assert.equal((await workspace.grep('needle', { path: 'huge' })).skippedLarge, 1);
      assert.equal((await workspace.stat('huge'))?.size, 3 * 1024 ** 3);
      assert.ok(process.memoryUsage.rss() - before < 64 * 1024 ** 2, 'memory grew');
      rmSync(join(root, 'huge'));
    });
  });

  test('a directory of 100,000 entries', async () => {
    const many = join(tmp, 'many');
    mkdirSync(many);
    for (let i = 0; i < 100_000; i++) writeFileSync(join(many, `f${i}`), '');
    const workspace = new NodeWorkspace({ root: many });
    assert.equal((await workspace.readdir('.')).length, 100_000);
    const list = createFsTools(workspace).find(({ name }) => name === 'list_dir');
    const text = String(await list?.execute({}));
    assert.equal(text.split('\n').filter((line) => line.startsWith('f')).length, 200);
    assert.match(text, /^\[.*200/m);
    const found = await workspace.glob('**');
    assert.deepEqual([found.paths.length, found.truncated], [200, true]);
    await workspace.rm('f1');
    rmSync(many, { recursive: true });
  });

  test('files that vanish during a walk are no failure', async () => {
    const busy = join(tmp, 'busy');
    mkdirSync(busy);
    const workspace = new NodeWorkspace({ root: busy });
    for (let round = 0; round < 30; round++) {
      for (let i = 0; i < 50; i++) writeFileSync(join(busy, `f${i}.txt`), 'needle\n');
      const searches = [workspace.grep('needle'), workspace.glob('**'), workspace.readdir('.')];
      for (let i = 0; i < 50; i++) rmSync(join(busy, `f${i}.txt`));
      await Promise.all(searches);
    }
  });

  test('no space left: the old bytes stay and nothing is left behind', { skip: !(isRoot && process.platform === 'linux') && 'mounting a tmpfs needs root on Linux' }, async () => {
    const small = join(tmp, 'small');
    mkdirSync(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', small]);
    const workspace = new NodeWorkspace({ root: small });
    try {
      await workspace.writeFile('f.txt', 'precious\n');
      await assert.rejects(workspace.writeFile('f.txt', 'x'.repeat(1 << 20)), code('NO_SPACE', /space/));
      await assert.rejects(workspace.writeFile('new.txt', 'x'.repeat(1 << 20)), code('NO_SPACE'));
      await assert.rejects(workspace.editFile('f.txt', { oldString: 'precious', newString: 'x'.repeat(1 << 20) }), code('NO_SPACE'));
      assert.deepEqual(readdirSync(small), ['f.txt']);
      assert.equal(readFileSync(join(small, 'f.txt'), 'utf8'), 'precious\n');
    } finally {
      await workspace.close();
      execFileSync('umount', [small]);
    }
  });

  test('no descriptors left: a clear error, and the workspace works again afterwards', { skip: process.platform !== 'linux' && 'ulimit' }, () => {
    const run = spawnSync('sh', ['-c', 'ulimit -n 200; exec "$0" "$@"', process.execPath, self, 'few-descriptors'], { encoding: 'utf8' });
    assert.equal(run.status, 0, run.stdout + run.stderr);
    assert.match(run.stdout, /TOO_MANY_OPEN_FILES/);
  });

  test('20,000 failing calls leak no descriptor', { skip: process.platform !== 'linux' && '/proc' }, async () => {
    const workspace = new NodeWorkspace({ root });
    const calls = [
      () => workspace.readFile('nope'),
      () => workspace.readFile('../x'),
      () => workspace.readFile('a.txt/x'),
      () => workspace.readPage('a.txt', { offset: 99 }),
      () => workspace.writeFile('a.txt/x', 'x'),
      () => workspace.writeFile('a.txt', 'x', { createOnly: true }),
      () => workspace.writeFile('.git/config', 'x'),
      () => workspace.editFile('a.txt', { oldString: 'absent', newString: 'x' }),
      () => workspace.readdir('a.txt'),
      () => workspace.mkdir('a.txt'),
      () => workspace.rm('nope'),
      () => workspace.rename('nope', 'x'),
      () => workspace.glob('*', { path: 'nope' }),
      () => workspace.grep('x', { path: 'nope' }),
      () => workspace.exec('true', { cwd: 'nope' }),
    ];
    const failing = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) await assert.rejects(calls[i % calls.length]!(), WorkspaceError);
    };
    await failing(300);
    const before = readdirSync('/proc/self/fd').length;
    await failing(20_000);
    assert.ok(readdirSync('/proc/self/fd').length <= before + 1, `from ${before} to ${readdirSync('/proc/self/fd').length}`);
    assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'one\ntwo\nthree\n');
  });
}

/** Runs alone, with 200 descriptors. */
async function withFewDescriptors(): Promise<void> {
  const { openSync, closeSync } = await import('node:fs');
  const root = mkdtempSync(join(tmpdir(), 'croft-few-'));
  writeFileSync(join(root, 'a.txt'), 'old\n');
  const workspace = new NodeWorkspace({ root });
  await workspace.readFile('a.txt');
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch {
    // EMFILE: now there is none left.
  }
  const failures = await Promise.allSettled([
    workspace.readFile('a.txt'),
    workspace.writeFile('a.txt', 'new\n'),
    workspace.editFile('a.txt', { oldString: 'old', newString: 'new' }),
    workspace.readdir('.'),
    workspace.exec('true'),
  ]);
  for (const fd of taken) closeSync(fd);
  for (const failure of failures) {
    assert.equal(failure.status, 'rejected');
    assert.ok(failure.reason instanceof WorkspaceError, String(failure.reason));
    assert.ok(['TOO_MANY_OPEN_FILES', 'SPAWN_FAILED'].includes(failure.reason.code), `${failure.reason.code}: ${failure.reason.message}`);
  }
  console.log(failures.map((failure) => (failure as PromiseRejectedResult).reason.code).join(' '));
  assert.equal(await workspace.readFile('a.txt'), 'old\n');
  await workspace.writeFile('a.txt', 'new\n');
  assert.deepEqual(readdirSync(root), ['a.txt']);
  await workspace.close();
  rmSync(root, { recursive: true });
}
