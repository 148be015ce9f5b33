import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  applyEdits, applyHashEdits, createFsTools, createGitTools, hashLine, MemoryWorkspace, NodeWorkspace, type FsProvider, type FsToolsOptions, type Tool,
} from 'croft';

const ALL: FsToolsOptions['include'] = ['multi_edit', 'edit_at_hash', 'apply_patch', 'rename', 'remove', 'view_image'];

function byName(tools: readonly Tool[]): Record<string, Tool> {
  return Object.fromEntries(tools.map((tool) => [tool.name, tool]));
}

function call(tools: Record<string, Tool>, name: string, input: unknown): Promise<unknown> {
  const tool = tools[name];
  assert.ok(tool, `no tool ${name}`);
  return tool.execute(input);
}

const PNG = Buffer.from('89504e470d0a1a0a0000000049454e44ae426082', 'hex');

function provider(workspace: MemoryWorkspace): FsProvider {
  const { readFile, writeFile, stat, readdir, mkdir, rm } = workspace;
  return Object.fromEntries(Object.entries({ readFile, writeFile, stat, readdir, mkdir, rm }).map(([name, method]) => [name, method.bind(workspace)])) as unknown as FsProvider;
}

test('more tools are there when included, and readOnly keeps only those that read', () => {
  const workspace = new MemoryWorkspace();
  const names = (options: FsToolsOptions): string[] => createFsTools(workspace, options).map(({ name }) => name);
  assert.deepEqual(names({}), ['read_file', 'list_dir', 'glob', 'grep', 'write_file', 'edit_file']);
  assert.deepEqual(names({ include: ALL }).slice(6), ALL);
  assert.deepEqual(names({ include: ALL, readOnly: true }), ['read_file', 'list_dir', 'glob', 'grep', 'view_image']);
  assert.deepEqual(names({ include: ['remove'], names: { remove: 'rm' } }).at(-1), 'rm');
});

test('a provider of six methods gets the tools it can carry out and not the others', async () => {
  const workspace = new MemoryWorkspace({ files: { f: 'a\nb\n' } });
  for (const name of ['apply_patch', 'rename', 'view_image'] as const) {
    assert.throws(() => createFsTools(provider(workspace), { include: [name] }), { code: 'UNSUPPORTED' });
  }
  const tools = byName(createFsTools(provider(workspace), { include: ['multi_edit', 'edit_at_hash', 'remove'], staleCheck: true }));
  await call(tools, 'read_file', { path: 'f' });
  await call(tools, 'multi_edit', { path: 'f', edits: [{ old_string: 'a', new_string: 'A' }] });
  await call(tools, 'edit_at_hash', { path: 'f', line_number: 2, hash: hashLine('b'), new_content: 'B' });
  assert.equal(await workspace.readFile('f'), 'A\nB\n');
  await workspace.writeFile('f', 'theirs\n');
  await assert.rejects(call(tools, 'edit_file', { path: 'f', old_string: 'theirs', new_string: 'mine' }), { code: 'STALE' });
  await assert.rejects(call(tools, 'write_file', { path: 'f', content: 'mine' }), { code: 'STALE' });
  await call(tools, 'remove', { path: 'f' });
  assert.deepEqual(workspace.snapshot(), {});
});

test('a list of edits says what each did', async () => {
  const workspace = new MemoryWorkspace({ files: { f: 'one\ntwo\ntwo\n' } });
  const tools = byName(createFsTools(workspace, { include: ALL }));
  const edits = [{ old_string: 'one', new_string: '1' }, { old_string: 'two', new_string: '2', replace_all: true }];
  const answer = await call(tools, 'multi_edit', { path: 'f', edits });
  assert.equal(answer, 'Edited "f":\nedit 1: 1 replacement, the first in line 1\nedit 2: 2 replacements, the first in line 2');
  const twin = await workspace.multiEdit('f', [{ oldString: '1', newString: 'one' }]);
  assert.deepEqual(twin, { edits: [{ replacements: 1, firstLine: 1 }], changed: true });
  assert.equal(applyEdits('a b', [{ oldString: 'a', newString: 'x' }, { oldString: 'x b', newString: 'y' }]).text, 'y');
});

test('read_file shows the anchors that edit_at_hash takes', async () => {
  const workspace = new MemoryWorkspace({ files: { f: 'a\nb\nc\n' } });
  const tools = byName(createFsTools(workspace, { include: ALL, hashLines: true, hashLength: 12 }));
  const page = String(await call(tools, 'read_file', { path: 'f' }));
  const [, anchor] = /^L2:([0-9a-f]{12}):b$/m.exec(page) ?? [];
  assert.equal(await call(tools, 'edit_at_hash', { path: 'f', line_number: 2, hash: anchor, new_content: 'B\nB2' }), 'Edited "f" from line 2 on: 2 lines added, 1 line removed.');
  await call(tools, 'edit_at_hash', { path: 'f', line_number: 1, hash: hashLine('a'), new_content: null });
  assert.equal(await workspace.readFile('f'), 'B\nB2\nc\n');
  await assert.rejects(call(tools, 'edit_at_hash', { path: 'f', line_number: 1, hash: hashLine('B') }), { code: 'INVALID_ARGUMENT' });
  await assert.rejects(call(tools, 'edit_at_hash', { path: 'f', line_number: 1, hash: hashLine('x'), new_content: '' }), { code: 'ANCHOR_MISMATCH' });
  const range = { line: 1, endLine: 2, hash: hashLine('B'), hashes: [hashLine('B'), hashLine('B2')], op: 'delete' as const };
  assert.deepEqual(await workspace.editAtHash('f', [range]), { changed: true, firstLine: 1, linesAdded: 0, linesRemoved: 2 });
  assert.equal(applyHashEdits('c\n', [{ line: 1, hash: hashLine('c'), op: 'insert_before', content: 'b' }]).text, 'b\nc\n');
});

test('a patch over several files is told file by file, and refused whole', async () => {
  const workspace = new MemoryWorkspace({ files: { f: 'x\na\n', g: 'g\n' } });
  const tools = byName(createFsTools(workspace, { include: ALL }));
  const patch = 'diff --git a/g b/h\nrename from g\nrename to h\ndiff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n';
  assert.equal(await call(tools, 'apply_patch', { patch }), 'Renamed "g" to "h".\nCreated "new": 1 hunk.');
  const bad = '--- a/h\n+++ b/h\n@@ -1 +1 @@\n-g\n+G\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-no\n+yes\n';
  await assert.rejects(call(tools, 'apply_patch', { patch: bad }), { code: 'PATCH_CONFLICT' });
  assert.deepEqual(workspace.snapshot(), { f: 'x\na\n', h: 'g\n', new: 'n\n' });
  const [file] = await workspace.applyPatch('*** Begin Patch\n*** Update File: f\n@@\n x\n-a\n+A\n*** End Patch');
  assert.equal(file?.action, 'update');
  assert.equal(await workspace.readFile('f'), 'x\nA\n');
  const moved = '--- a/f\n+++ b/f\n@@ -12,3 +12,3 @@\n a\n-b\n+B\n c\n';
  await workspace.writeFile('f', '1\n2\n3\na\nb\nc\n4\n');
  assert.equal(await call(tools, 'apply_patch', { patch: moved }), 'Changed "f": 1 hunk.\n[hunk 1 of "f" was applied at line 4, 8 lines above the place it names]');
});

test('with staleCheck every changing tool refuses what changed since it was read, and goes on after its own changes', async () => {
  const workspace = new MemoryWorkspace({ files: { f: 'a\n' } });
  const tools = byName(createFsTools(workspace, { include: ALL, staleCheck: true }));
  const patch = (from: string, to: string): unknown => ({ patch: `--- a/f\n+++ b/f\n@@ -1 +1 @@\n-${from}\n+${to}\n` });
  await call(tools, 'read_file', { path: './f' });
  await call(tools, 'edit_file', { path: 'f', old_string: 'a', new_string: 'b' });
  await call(tools, 'apply_patch', patch('b', 'c'));
  await call(tools, 'write_file', { path: 'f', content: 'd\n' });
  await call(tools, 'rename', { from: 'f', to: 'g' });
  await call(tools, 'edit_file', { path: 'g', old_string: 'd', new_string: 'e' });
  await call(tools, 'rename', { from: 'g', to: 'f' });
  await workspace.writeFile('f', 'theirs\n');
  const changes: [string, unknown][] = [
    ['edit_file', { path: 'f', old_string: 'theirs', new_string: 'mine' }],
    ['multi_edit', { path: 'f', edits: [{ old_string: 'theirs', new_string: 'mine' }] }],
    ['write_file', { path: 'f', content: 'mine\n' }],
    ['edit_at_hash', { path: 'f', line_number: 1, hash: hashLine('theirs'), new_content: 'mine' }],
    ['apply_patch', patch('theirs', 'mine')],
  ];
  for (const [name, input] of changes) await assert.rejects(call(tools, name, input), { code: 'STALE' }, name);
  assert.equal(await workspace.readFile('f'), 'theirs\n');
  await call(tools, 'read_file', { path: 'f' });
  await call(tools, 'edit_file', { path: 'f', old_string: 'theirs', new_string: 'ours' });
  assert.equal(await workspace.readFile('f'), 'ours\n');
});

test('view_image shows images by their bytes, and nothing else', async () => {
  const workspace = new MemoryWorkspace({ files: { 'a.txt': PNG, 'cut.png': PNG.subarray(0, 10), 't.png': 'text' } });
  const tools = byName(createFsTools(workspace, { include: ALL }));
  assert.deepEqual(await call(tools, 'view_image', { path: 'a.txt' }), { type: 'image', mediaType: 'image/png', data: PNG.toString('base64') });
  for (const path of ['cut.png', 't.png']) await assert.rejects(call(tools, 'view_image', { path }), { code: 'INVALID_ARGUMENT' });
  await assert.rejects(call(tools, 'view_image', { path: '../a.png' }), { code: 'OUTSIDE_WORKSPACE' });
});

test('rename and remove refuse what every other door refuses', async () => {
  const workspace = new MemoryWorkspace({ files: { f: 'a', g: 'b', 'd/x': 'x' } });
  const tools = byName(createFsTools(workspace, { include: ALL }));
  const refused: [string, unknown, string][] = [
    ['rename', { from: 'f', to: 'g' }, 'ALREADY_EXISTS'],
    ['rename', { from: 'f', to: '.git/hooks/x' }, 'PROTECTED_PATH'],
    ['rename', { from: '../f', to: 'h' }, 'OUTSIDE_WORKSPACE'],
    ['remove', { path: 'd' }, 'DIRECTORY_NOT_EMPTY'],
    ['remove', { path: '.', recursive: true }, 'INVALID_ARGUMENT'],
    ['remove', { path: '.GIT' }, 'PROTECTED_PATH'],
  ];
  for (const [name, input, code] of refused) {
    await assert.rejects(call(tools, name, input), (error: { code: string }) => error.code === code || (code === 'INVALID_ARGUMENT' && error.code !== 'INTERNAL'), `${name} ${JSON.stringify(input)}`);
  }
  await call(tools, 'rename', { from: 'f', to: 'g', overwrite: true });
  await call(tools, 'remove', { path: 'd', recursive: true });
  assert.deepEqual(workspace.snapshot(), { g: 'a' });
});

/** A repository whose configuration names a program wherever git would run one. */
function trapped(): { root: string; proof: string } {
  const root = mkdtempSync(join(tmpdir(), 'croft-git-'));
  const proof = join(root, 'PWNED');
  const run = (...args: string[]): void => void execFileSync('git', args, { cwd: root, stdio: 'pipe' });
  const trap = join(root, 'trap.sh');
  writeFileSync(trap, `#!/bin/sh\ntouch ${proof}\ncat\n`, { mode: 0o755 });
  run('init', '-q', '-b', 'main');
  run('config', 'user.name', 'T');
  run('config', 'user.email', 't@example.invalid');
  writeFileSync(join(root, 'f'), 'one\n');
  run('add', 'f');
  run('commit', '-q', '-m', 'base');
  writeFileSync(join(root, '.gitattributes'), 'f filter=evil diff=evil\n');
  const keys = ['core.fsmonitor', 'core.editor', 'core.pager', 'core.sshCommand', 'diff.external', 'diff.evil.command', 'diff.evil.textconv', 'gpg.program', 'filter.evil.clean', 'filter.evil.smudge', 'filter.evil.process'];
  for (const key of keys) run('config', key, trap);
  run('config', 'commit.gpgSign', 'true');
  run('config', 'filter.evil.required', 'true');
  run('config', 'core.worktree', tmpdir());
  for (const hook of ['pre-commit', 'commit-msg', 'post-commit', 'post-index-change', 'reference-transaction']) {
    writeFileSync(join(root, '.git/hooks', hook), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 });
  }
  writeFileSync(join(root, 'f'), 'two\n');
  writeFileSync(join(root, 'new'), 'n\n');
  rmSync(proof, { force: true });
  return { root, proof };
}

test('git tools run nothing that a repository names', { skip: process.platform === 'win32' && 'needs a POSIX shell' }, async () => {
  const { root, proof } = trapped();
  await using workspace = new NodeWorkspace({ root });
  const tools = byName(createGitTools(workspace));
  try {
    const status = await call(tools, 'git_status', {});
    assert.deepEqual(status, { branch: 'main', staged: [], unstaged: ['f'], untracked: ['.gitattributes', 'new', 'trap.sh'], conflicted: [] });
    assert.match(String(await call(tools, 'git_diff', { path: 'f' })), /^-one\n\+two$/m);
    assert.equal(await call(tools, 'git_diff', { staged: true }), '[no differences]');
    // `f` needs its filter, which is not run: not committed as it is. The others need none.
    await assert.rejects(call(tools, 'git_commit', { message: 'm', files: ['f'] }), { code: 'GIT_FAILED' });
    const done = (await call(tools, 'git_commit', { message: 'm', files: ['new'] })) as { note?: string };
    assert.match(String(done.note), /hooks/);
    for (const path of ['../x', '/etc']) await assert.rejects(call(tools, 'git_diff', { path }), { code: 'OUTSIDE_WORKSPACE' });
    assert.ok(!existsSync(proof), 'a program was run');
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test('git tools need a directory on disk', () => {
  assert.throws(() => createGitTools(new MemoryWorkspace() as never), { code: 'UNSUPPORTED' });
});
