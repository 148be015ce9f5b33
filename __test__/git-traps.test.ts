// Repositories set up as traps, beyond those of the public cases: whatever they name, git tools run nothing of theirs,
// show nothing from outside, and end in time.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { createGitTools, NodeWorkspace, WorkspaceError, type Tool } from 'croft';

const SECRET = 'OUTSIDE-SECRET';
/** Each run of git ends by then, and the call with it: soon where a FIFO makes it wait, late where it has work to do. */
const SOON_MS = 700;
const LATE_MS = 15_000;

class Trap {
  readonly tmp = mkdtempSync(join(tmpdir(), 'croft-trap-'));
  readonly root = join(this.tmp, 'ws');
  readonly out = join(this.tmp, 'out');
  readonly ran = join(this.tmp, 'RAN');
  /** A program that proves that it was run. */
  readonly program = join(this.tmp, 'trap.sh');

  constructor() {
    for (const path of [this.root, this.out]) mkdirSync(path);
    writeFileSync(this.program, `#!/bin/sh\ntouch '${this.ran}'\ncat\n`, { mode: 0o755 });
    this.init(this.root);
    this.file('f', 'one\n');
    this.git('add', 'f');
    this.git('commit', '-q', '-m', 'base');
    this.file('f', 'two\n');
  }

  init(root: string): void {
    for (const args of [['init', '-q', '-b', 'main'], ['config', 'user.name', 'T'], ['config', 'user.email', 't@example.invalid']]) {
      execFileSync('git', args, { cwd: root, stdio: 'pipe' });
    }
  }

  git(...args: string[]): string {
    return execFileSync('git', args, { cwd: this.root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  }

  file(path: string, content: string): string {
    const full = join(this.root, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
    return full;
  }

  fifo(path: string): void {
    const full = join(this.root, path);
    mkdirSync(dirname(full), { recursive: true });
    rmSync(full, { force: true });
    execFileSync('mkfifo', [full]);
  }

  /** Every setting that names a program, for a configuration file. */
  settings(): string {
    const keys = ['core.fsmonitor', 'core.editor', 'core.pager', 'core.sshCommand', 'core.askPass', 'diff.external', 'diff.evil.command', 'diff.evil.textconv', 'gpg.program', 'filter.evil.clean', 'filter.evil.smudge', 'filter.evil.process', 'credential.helper'];
    const path = join(this.out, 'settings');
    for (const key of keys) execFileSync('git', ['config', '--file', path, key, this.program]);
    execFileSync('git', ['config', '--file', path, 'commit.gpgSign', 'true']);
    execFileSync('git', ['config', '--file', path, 'core.hooksPath', this.out]);
    for (const hook of ['pre-commit', 'post-index-change', 'reference-transaction', 'post-commit']) writeFileSync(join(this.out, hook), `#!/bin/sh\ntouch '${this.ran}'\n`, { mode: 0o755 });
    this.file('.gitattributes', 'f filter=evil diff=evil\n');
    return path;
  }

  dispose(): void {
    rmSync(this.tmp, { recursive: true, force: true });
  }
}

interface Answer {
  tool: string;
  value?: unknown;
  error?: WorkspaceError;
}

/** Every git tool, one after the other; each answer is looked at for what lies outside. */
async function callAll(trap: Trap, timeoutMs: number, files: string[] = ['f']): Promise<Answer[]> {
  await using workspace = new NodeWorkspace({ root: trap.root });
  const tools = new Map(createGitTools(workspace, { timeoutMs }).map((tool) => [tool.name, tool]));
  const answers: Answer[] = [];
  for (const [tool, input] of [['git_status', {}], ['git_diff', {}], ['git_diff', { staged: true }], ['git_commit', { message: 'm', files }]] as const) {
    answers.push(await answer(tools.get(tool) as Tool, input, timeoutMs));
  }
  rmSync(join(trap.root, '.git/index.lock'), { force: true });
  return answers;
}

async function answer(tool: Tool, input: unknown, timeoutMs: number): Promise<Answer> {
  const started = performance.now();
  const found: Answer = { tool: tool.name };
  try {
    found.value = await tool.execute(input);
  } catch (error) {
    assert.ok(error instanceof WorkspaceError, String(error));
    found.error = error;
  }
  // Against hanging: six runs at most, on a busy machine.
  assert.ok(performance.now() - started < 6 * timeoutMs + 20_000, `${tool.name} did not end in time`);
  return found;
}

function assertHarmless(trap: Trap, answers: readonly Answer[]): void {
  assert.ok(!existsSync(trap.ran), 'a program of the repository was run');
  const said = answers.map(({ value, error }) => `${JSON.stringify(value)} ${error?.message}`).join('\n');
  assert.ok(!said.includes(SECRET), `something from outside was shown: ${said}`);
}

type Expected = 'works' | 'GIT_FAILED' | 'either';

interface Case {
  title: string;
  set(trap: Trap): void;
  waits?: true;
  /** Of the first three calls. A commit may be refused where another call is not (filters). */
  expected: Expected;
  files?: string[];
}

const include = (line: (settings: string, trap: Trap) => string) => (trap: Trap) => {
  const config = trap.file('.git/config', readFileSync(join(trap.root, '.git/config'), 'utf8') + line(trap.settings(), trap));
  assert.ok(existsSync(config));
};

function submodule(trap: Trap): void {
  const inner = join(trap.root, 'sub');
  mkdirSync(inner);
  trap.init(inner);
  writeFileSync(join(inner, 'x'), 'x\n');
  execFileSync('git', ['add', 'x'], { cwd: inner });
  execFileSync('git', ['commit', '-q', '-m', 'inner'], { cwd: inner });
  trap.git('-c', 'advice.addEmbeddedRepo=false', 'add', 'sub');
  trap.file('.gitmodules', '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n');
  trap.git('add', '.gitmodules');
  trap.git('commit', '-q', '-m', 'with a submodule');
  for (const [key, value] of [['submodule.sub.active', 'true'], ['submodule.sub.ignore', 'none'], ['diff.ignoreSubmodules', 'none'], ['status.submoduleSummary', 'true']]) trap.git('config', key as string, value as string);
  writeFileSync(join(inner, '.git/config'), readFileSync(trap.settings(), 'utf8'), { flag: 'a' });
  for (const hook of ['pre-commit', 'post-index-change']) writeFileSync(join(inner, '.git/hooks', hook), `#!/bin/sh\ntouch '${trap.ran}'\n`, { mode: 0o755 });
  writeFileSync(join(inner, 'x'), 'changed\n');
}

/** Another repository, outside, and its blob as a file that is missing here: a diff would show it. */
function borrowed(trap: Trap, borrow: (objects: string) => void): void {
  const other = join(trap.out, 'other');
  mkdirSync(other);
  trap.init(other);
  writeFileSync(join(other, 's'), `${SECRET}\n`);
  execFileSync('git', ['add', 's'], { cwd: other });
  const blob = execFileSync('git', ['rev-parse', ':s'], { cwd: other, encoding: 'utf8' }).trim();
  trap.git('update-index', '--add', '--cacheinfo', `100644,${blob},s`);
  borrow(join(other, '.git/objects'));
}

const CASES: Case[] = [
  { title: 'include.path', set: include((settings) => `[include]\n\tpath = ${settings}\n`), expected: 'works' },
  { title: 'includeIf.gitdir', set: include((settings, { root }) => `[includeIf "gitdir:${root}/"]\n\tpath = ${settings}\n`), expected: 'works' },
  { title: 'include.path to a file that is no configuration', set: (trap) => {
    writeFileSync(join(trap.out, 'secret'), `${SECRET}\n`);
    trap.git('config', 'include.path', join(trap.out, 'secret'));
  }, expected: 'either' },
  { title: 'include.path to a FIFO', waits: true, set: (trap) => {
    trap.fifo('pipe');
    trap.file('.git/config', '[core]\n\trepositoryformatversion = 0\n[include]\n\tpath = ../pipe\n');
  }, expected: 'GIT_FAILED' },
  { title: 'config.worktree', set: (trap) => {
    trap.git('config', 'extensions.worktreeConfig', 'true');
    trap.file('.git/config.worktree', readFileSync(trap.settings(), 'utf8'));
  }, expected: 'works' },
  { title: 'commondir', set: (trap) => borrowed(trap, (objects) => void trap.file('.git/commondir', `${dirname(objects)}\n`)), expected: 'GIT_FAILED' },
  { title: 'objects/info/alternates', set: (trap) => borrowed(trap, (objects) => void trap.file('.git/objects/info/alternates', `${objects}\n`)), expected: 'GIT_FAILED' },
  { title: 'objects as a link', set: (trap) => borrowed(trap, (objects) => {
    renameSync(join(trap.root, '.git/objects'), join(trap.out, 'own'));
    execFileSync('cp', ['-r', `${join(trap.out, 'own')}/.`, objects]);
    symlinkSync(objects, join(trap.root, '.git/objects'));
  }), expected: 'GIT_FAILED' },
  { title: 'a loose object as a link', set: (trap) => borrowed(trap, (objects) => {
    const [folder = ''] = execFileSync('ls', [objects], { encoding: 'utf8' }).split('\n').filter((name) => name.length === 2);
    const [name = ''] = execFileSync('ls', [join(objects, folder)], { encoding: 'utf8' }).split('\n');
    mkdirSync(join(trap.root, '.git/objects', folder), { recursive: true });
    symlinkSync(join(objects, folder, name), join(trap.root, '.git/objects', folder, name));
  }), expected: 'GIT_FAILED' },
  { title: 'the index as a link', set: (trap) => {
    renameSync(join(trap.root, '.git/index'), join(trap.out, 'index'));
    symlinkSync(join(trap.out, 'index'), join(trap.root, '.git/index'));
  }, expected: 'GIT_FAILED' },
  { title: 'a submodule with settings and hooks of its own', set: submodule, expected: 'works' },
  { title: 'a submodule, committed by name', set: submodule, expected: 'works', files: ['sub'] },
  { title: 'a nested repository that is no submodule', set: (trap) => {
    mkdirSync(join(trap.root, 'nested'));
    trap.init(join(trap.root, 'nested'));
    writeFileSync(join(trap.root, 'nested/.git/config'), readFileSync(trap.settings(), 'utf8'), { flag: 'a' });
  }, expected: 'works', files: ['nested'] },
  ...['.gitignore', 'd/.gitignore', '.gitattributes', '.git/info/exclude', '.git/info/attributes', '.git/config', '.git/HEAD', '.git/index', '.git/packed-refs'].map(
    (path): Case => ({ title: `a FIFO as ${path}`, waits: true, set: (trap) => {
      trap.file('d/x', 'x');
      trap.fifo(path);
    }, expected: 'either' }),
  ),
  { title: 'core.excludesFile, core.attributesFile and diff.orderFile as FIFOs', waits: true, set: (trap) => {
    trap.fifo('pipe');
    for (const key of ['core.excludesFile', 'core.attributesFile', 'diff.orderFile']) trap.git('config', key, join(trap.root, 'pipe'));
  }, expected: 'either' },
];

describe('a repository set up as a trap runs nothing, shows nothing from outside and ends in time', { skip: process.platform === 'win32' && 'needs a POSIX shell' }, () => {
  for (const { title, set, expected, files, waits } of CASES) {
    test(title, async () => {
      const trap = new Trap();
      try {
        set(trap);
        rmSync(trap.ran, { force: true });
        const answers = await callAll(trap, waits ? SOON_MS : LATE_MS, files);
        assertHarmless(trap, answers);
        for (const { tool, error } of answers.slice(0, 3)) {
          if (expected === 'works') assert.equal(error, undefined, `${tool}: ${error?.message}`);
          if (expected === 'GIT_FAILED') assert.equal(error?.code, 'GIT_FAILED', tool);
        }
        for (const { tool, error } of answers) if (error) assert.equal(error.code, 'GIT_FAILED', `${tool}: ${error.message}`);
      } finally {
        trap.dispose();
      }
    });
  }

  test('GIT_* of the host, whatever they name', async () => {
    const trap = new Trap();
    const before = { ...process.env };
    const elsewhere = join(trap.out, 'other');
    mkdirSync(elsewhere);
    trap.init(elsewhere);
    writeFileSync(join(elsewhere, SECRET), 'x');
    Object.assign(process.env, {
      GIT_DIR: join(elsewhere, '.git'), GIT_WORK_TREE: elsewhere, GIT_INDEX_FILE: join(elsewhere, '.git/index'), GIT_COMMON_DIR: join(elsewhere, '.git'),
      GIT_OBJECT_DIRECTORY: join(elsewhere, '.git/objects'), GIT_ALTERNATE_OBJECT_DIRECTORIES: join(elsewhere, '.git/objects'), GIT_NAMESPACE: 'x',
      GIT_EXTERNAL_DIFF: trap.program, GIT_EDITOR: trap.program, GIT_SEQUENCE_EDITOR: trap.program, GIT_PAGER: trap.program, GIT_SSH_COMMAND: trap.program, GIT_ASKPASS: trap.program,
      GIT_EXEC_PATH: trap.out, GIT_TRACE: join(trap.out, 'trace'), GIT_TRACE2_EVENT: join(trap.out, 'trace'), GIT_CONFIG_GLOBAL: trap.settings(), GIT_CONFIG_SYSTEM: join(trap.out, 'settings'),
      GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'core.fsmonitor', GIT_CONFIG_VALUE_0: trap.program, GIT_CONFIG_PARAMETERS: `'core.fsmonitor=${trap.program}'`, GIT_LITERAL_PATHSPECS: '0', GIT_ICASE_PATHSPECS: '1',
    });
    try {
      rmSync(join(trap.root, '.gitattributes'));
      const answers = await callAll(trap, LATE_MS);
      assertHarmless(trap, answers);
      assert.deepEqual(answers[0]?.value, { branch: 'main', staged: [], unstaged: ['f'], untracked: [], conflicted: [] });
      assert.match(String(answers[1]?.value), /^-one\n\+two$/m);
      for (const { tool, error } of answers) assert.equal(error, undefined, `${tool}: ${error?.message}`);
      assert.ok(!existsSync(join(trap.out, 'trace')), 'a trace was written');
    } finally {
      for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
      Object.assign(process.env, before);
      trap.dispose();
    }
  });
});
