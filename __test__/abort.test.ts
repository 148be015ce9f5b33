// A signal that is already aborted starts nothing, through every tool and every method that changes or reads files.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFsTools, createGitTools, hashLine, MemoryWorkspace, NodeWorkspace, type CallOptions, type Tool, type WorkspaceFiles } from 'croft';

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==', 'base64');
const FILES: Record<string, string | Uint8Array> = { 'a.txt': 'one\ntwo\n', 'd/x': 'x', 'i.png': PNG };
const PATCH = '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n';

/** Each would succeed. */
const INPUTS: Record<string, unknown> = {
  read_file: { path: 'a.txt' },
  write_file: { path: 'a.txt', content: 'new' },
  edit_file: { path: 'a.txt', old_string: 'one', new_string: '1' },
  multi_edit: { path: 'a.txt', edits: [{ old_string: 'one', new_string: '1' }] },
  edit_at_hash: { path: 'a.txt', line_number: 1, hash: hashLine('one'), new_content: '1' },
  apply_patch: { patch: PATCH },
  list_dir: { path: '.' },
  glob: { pattern: '*' },
  grep: { pattern: 'o' },
  rename: { from: 'a.txt', to: 'b/c.txt' },
  remove: { path: 'd', recursive: true },
  view_image: { path: 'i.png' },
  git_status: {},
  git_diff: {},
  git_commit: { message: 'm', files: ['a.txt'] },
};

type Method = (workspace: WorkspaceFiles, options: CallOptions) => Promise<unknown>;

const METHODS: Record<string, Method> = {
  readFile: (ws, options) => ws.readFile('a.txt', options),
  readFileBytes: (ws, options) => ws.readFileBytes('a.txt', options),
  readPage: (ws, options) => ws.readPage('a.txt', options),
  writeFile: (ws, options) => ws.writeFile('a.txt', 'new', options),
  editFile: (ws, options) => ws.editFile('a.txt', { oldString: 'one', newString: '1' }, options),
  multiEdit: (ws, options) => ws.multiEdit('a.txt', [{ oldString: 'one', newString: '1' }], options),
  editAtHash: (ws, options) => ws.editAtHash('a.txt', [{ line: 1, hash: hashLine('one'), op: 'delete' }], options),
  applyPatch: (ws, options) => ws.applyPatch(PATCH, options),
  stat: (ws, options) => ws.stat('a.txt', options),
  readdir: (ws, options) => ws.readdir('.', options),
  mkdir: (ws, options) => ws.mkdir('new/dir', options),
  rm: (ws, options) => ws.rm('d', { recursive: true, ...options }),
  rename: (ws, options) => ws.rename('a.txt', 'b/c.txt', options),
  glob: (ws, options) => ws.glob('*', options),
  grep: (ws, options) => ws.grep('o', options),
};

const EXTRA = ['multi_edit', 'edit_at_hash', 'apply_patch', 'rename', 'remove', 'view_image'] as const;

const reason = new Error('enough');
const signal = AbortSignal.abort(reason);
const aborted = (error: { code?: string; cause?: unknown }): boolean => error.code === 'ABORTED' && error.cause === reason;

async function refusesAll(workspace: WorkspaceFiles, tools: readonly Tool[]): Promise<void> {
  assert.deepEqual(new Set(tools.map(({ name }) => name)), new Set(Object.keys(INPUTS).slice(0, tools.length)));
  for (const tool of tools) await assert.rejects(tool.execute(INPUTS[tool.name], { signal }), aborted, tool.name);
  for (const [name, method] of Object.entries(METHODS)) await assert.rejects(method(workspace, { signal }), aborted, name);
}

test('an aborted signal starts nothing in memory', async () => {
  const workspace = new MemoryWorkspace({ files: FILES });
  const before = workspace.snapshot();
  await refusesAll(workspace, createFsTools(workspace, { include: [...EXTRA] }));
  assert.deepEqual(workspace.snapshot(), before);
});

test('the same calls without it succeed', async () => {
  for (const [name, method] of Object.entries(METHODS)) {
    await method(new MemoryWorkspace({ files: FILES }), { signal: new AbortController().signal }).catch((error: unknown) => assert.fail(`${name}: ${String(error)}`));
  }
  for (const { name } of createFsTools(new MemoryWorkspace(), { include: [...EXTRA] })) {
    const tools = createFsTools(new MemoryWorkspace({ files: FILES }), { include: [...EXTRA] });
    await tools.find((tool) => tool.name === name)?.execute(INPUTS[name], { signal: new AbortController().signal });
  }
});

function repository(): { root: string; ran: string } {
  const root = mkdtempSync(join(tmpdir(), 'croft-abort-'));
  const ran = `${root}.hook-ran`;
  const git = (...args: string[]): void => void execFileSync('git', args, { cwd: root, stdio: 'pipe' });
  for (const args of [['init', '-q'], ['config', 'user.name', 'T'], ['config', 'user.email', 't@example.invalid']]) git(...args);
  mkdirSync(join(root, 'd'));
  for (const [path, content] of Object.entries(FILES)) writeFileSync(join(root, path), content);
  writeFileSync(join(root, '.git/hooks/pre-commit'), `#!/bin/sh\ntouch '${ran}'\n`, { mode: 0o755 });
  return { root, ran };
}

/** Every path, and what the files hold; .git too. */
function everything(root: string): Record<string, string> {
  const entries = readdirSync(root, { recursive: true, withFileTypes: true });
  const content = (path: string, isFile: boolean): string => (isFile ? readFileSync(path, 'latin1') : '');
  return Object.fromEntries(entries.map((entry) => [join(entry.parentPath, entry.name), content(join(entry.parentPath, entry.name), entry.isFile())]));
}

test('an aborted signal starts nothing on disk, no git and no hook', { skip: process.platform === 'win32' && 'needs a POSIX shell' }, async () => {
  const { root, ran } = repository();
  await using workspace = new NodeWorkspace({ root });
  try {
    const before = everything(root);
    const git = createGitTools(workspace, { runHooks: true });
    await refusesAll(workspace, [...createFsTools(workspace, { include: [...EXTRA] }), ...git]);
    assert.deepEqual(everything(root), before);
    assert.ok(!existsSync(ran));
    for (const tool of git) await tool.execute(INPUTS[tool.name], { signal: new AbortController().signal });
    assert.ok(existsSync(ran), 'the twin that is not aborted runs the hook');
  } finally {
    rmSync(root, { recursive: true, force: true });
    rmSync(ran, { force: true });
  }
});
