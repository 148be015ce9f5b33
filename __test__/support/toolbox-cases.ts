/** The cases of edits at hashes, patches, stale files and git: their calls as the tools take them, and what they say in words. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createFsTools, createGitTools, hashLine, NodeWorkspace, type Tool } from 'croft';
import { makeCall, said, type Call, type Case, type Scene } from './cases.js';

export const TOOLBOX_AREAS = ['hash.anchor', 'patch.apply', 'patch.files', 'patch.confine', 'edit.stale', 'git.status', 'git.commit'];

/** The cases were written for other names of tools and arguments. */
export function renameToolboxCalls(item: Case): Case {
  return { ...item, call: item.call.map((call) => renamed(call, item)) };
}

function renamed({ tool, args }: Call, item: Case): Call {
  if (tool === 'hash_edit') return { tool: 'edit_at_hash', args: { ...args, edits: (args['edits'] as Anchored[]).map((edit) => anchored(edit, item)) } };
  if (tool === 'edit_file' && 'edits' in args) return { tool: 'multi_edit', args };
  if (tool === 'apply_patch' && 'root' in args) return { tool, args: { patch: String(args['patch']).replaceAll(/[ab]\//g, `${args['root']}/`) } };
  if (tool !== 'git_commit') return { tool, args };
  const { paths, ...rest } = args;
  return { tool, args: { ...rest, files: paths } };
}

type Anchored = Record<string, unknown> & { line: number; hash: string };

/** Anchors given in words: HA-001 takes that of line 6, HA-008 that of the line itself. */
function anchored(edit: Anchored, { id, setup }: Case): Anchored {
  if (!edit.hash.includes(' ')) return edit;
  const lines = String(setup[0]?.['text']).split(/\r?\n/);
  return { ...edit, hash: hashLine(lines[(id === 'HA-001' ? 6 : edit.line) - 1] ?? '') };
}

/** HA-001 with shortened anchors too: a short one that also begins another line's hash is refused. */
export async function shortAnchors(scene: Scene, { call, expect }: Case): Promise<void> {
  for (const one of call) await makeCall(scene, one);
  for (const hashLength of [8, 16, 64]) {
    scene.tools = byName(createFsTools(scene.workspace, { include: ['edit_at_hash'], hashLines: true, hashLength }));
    const page = String(await scene.tools.get('read_file')?.execute({ path: 'f.js' }));
    const hash = /^L6:([0-9a-f]+):/m.exec(page)?.[1] ?? '';
    assert.equal(hash.length, hashLength);
    await makeCall(scene, { tool: 'edit_at_hash', args: { path: 'f.js', edits: [{ line: 5, hash, op: 'replace', content: 'WRONG' }] } });
  }
  assert.equal(await scene.workspace.readFile('f.js'), expect.files?.['f.js']);
}

/** The reading before succeeds; the refusal is what counts. */
export async function readThenEdit(scene: Scene, { call }: Case): Promise<void> {
  const [read, change, edit] = call as [Call, Call, Call];
  await makeCall(scene, read);
  execFileSync('sh', ['-c', scene.expand(String(change.args['cmd']))]);
  scene.outcomes.length = 0;
  await makeCall(scene, edit);
}

export async function inParallel(scene: Scene, { call }: Case): Promise<void> {
  const calls = call[0]?.args['calls'] as Call[];
  await Promise.all(calls.map(async (one) => await makeCall(scene, one)));
  const text = readFileSync(join(scene.root, 'race.txt'), 'utf8');
  for (const { call: one, error } of scene.outcomes) {
    if (!error) assert.ok(text.includes(String(one.args['new_string'])), `a success is missing: ${String(one.args['new_string'])}`);
  }
}

/** Edits by two workspaces of one root and patches, all at once. */
export async function mixedWriters(scene: Scene): Promise<void> {
  const other = new NodeWorkspace({ root: scene.root });
  const toolsOfB = byName(createFsTools(other, { include: ['apply_patch'] }));
  const marks: string[] = [];
  const attempt = async (tools: Map<string, Tool>, name: string, mark: string, input: unknown): Promise<void> => {
    try {
      await tools.get(name)?.execute(input);
      marks.push(mark);
    } catch (error) {
      assert.ok(['STALE', 'PATCH_CONFLICT'].includes((error as { code: string }).code), String(error));
    }
  };
  const edit = (line: number) => ({ path: 'f.txt', old_string: `\n${line}\n`, new_string: `\nedit ${line};\n` });
  const patch = (line: number) => ({ patch: `--- a/f.txt\n+++ b/f.txt\n@@ -${line} +${line} @@\n-${line}\n+patch ${line};\n` });
  const jobs = [];
  for (let line = 2; line <= 11; line++) jobs.push(attempt(scene.tools, 'edit_file', `edit ${line};`, edit(line)));
  for (let line = 12; line <= 21; line++) jobs.push(attempt(toolsOfB, 'edit_file', `edit ${line};`, edit(line)));
  for (let line = 25; line <= 29; line++) jobs.push(attempt(toolsOfB, 'apply_patch', `patch ${line};`, patch(line)));
  await Promise.all(jobs);
  await other.close();
  const text = readFileSync(join(scene.root, 'f.txt'), 'utf8');
  for (const mark of marks) assert.ok(text.includes(mark), `a success is missing: ${mark}`);
  assert.ok(marks.length >= 20, `only ${marks.length} succeeded`);
}

/** A FIFO that git waits for: the time limit ends it. */
export async function endsInTime(scene: Scene, { call }: Case): Promise<void> {
  scene.tools = byName(createGitTools(scene.workspace as NodeWorkspace, { timeoutMs: 4000 }));
  for (const one of call) await makeCall(scene, one);
  for (const { error } of scene.outcomes) if (error) assert.equal(error.code, 'GIT_FAILED');
}

function byName(tools: readonly Tool[]): Map<string, Tool> {
  return new Map(tools.map((tool) => [tool.name, tool]));
}

interface Status {
  branch: string | null;
  staged: string[];
  unstaged: string[];
  untracked: string[];
  conflicted: string[];
}

const statusOf = (scene: Scene, at = 0): Status => scene.outcomes[at]?.value as Status;

function git(scene: Scene, ...args: string[]): string {
  return execFileSync('git', args, { cwd: scene.root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

const namesIn = (scene: Scene): string[] => git(scene, 'show', '-z', '--format=', '--name-only', 'HEAD').split('\0').filter(Boolean);

function hasNoCommit(scene: Scene): void {
  assert.throws(() => git(scene, 'rev-parse', '--verify', 'HEAD'));
}

function notPwned(scene: Scene): void {
  assert.ok(!existsSync(join(scene.tmp, 'PWNED')), 'a program of the repository was run');
}

const failedOnce = (scene: Scene, pattern: RegExp): void => {
  assert.equal(scene.outcomes[0]?.error?.code, 'GIT_FAILED');
  assert.match(said(scene.outcomes), pattern);
};

export const TOOLBOX_CHECKS: Record<string, (scene: Scene, item: Case) => Promise<void> | void> = {
  'PG-002': (scene) => assert.deepEqual(scene.outcomes.map(({ error }) => error?.code), ['PROTECTED_PATH']),
  'EN-006': (scene) => assert.match(said(scene.outcomes), /UTF-8/),
  'ED-016': (scene) => assert.match(said(scene.outcomes), /edit 2 of 2/),
  'ST-001': (scene) => assert.equal(scene.outcomes[0]?.error?.code, 'STALE'),
  'HA-001': (scene) => assert.equal(scene.outcomes[0]?.error?.code, 'ANCHOR_MISMATCH'),
  'HA-011': (scene) => assert.match(String(scene.outcomes[1]?.error?.message), /edit 2 of 2/),
  'HA-013': (scene) => assert.ok(scene.outcomes.slice(0, 3).every(({ error }) => error !== undefined)),
  'PT-005': (scene) => assert.ok(scene.outcomes[0]?.error?.code === 'PATCH_CONFLICT' || /2 lines below/.test(said(scene.outcomes))),
  'PT-008': (scene) => assert.match(said(scene.outcomes), /a1/),
  'PT-028': (scene) => {
    assert.match(said(scene.outcomes), /hunk 2/i);
    assert.deepEqual(readdirIfDisk(scene), ['f']);
  },
  'PF-001': (scene) => assert.match(said(scene.outcomes), /"?g"?/),
  'PF-006': (scene) => assert.match(said(scene.outcomes), /Renamed/),
  'PF-011': async (scene) => assert.equal((await scene.workspace.stat('s'))?.mode, 0o755),
  'GS-001': (scene) => assert.deepEqual(statusOf(scene).untracked.toSorted(), ['\u00e9.txt', '\u6587\u6863.txt']),
  'GS-004': notPwned,
  'GS-005': (scene) => {
    notPwned(scene);
    assert.deepEqual(statusOf(scene).unstaged, ['f']);
  },
  'GS-006': notPwned,
  'GS-009': (scene) => failedOnce(scene, /elsewhere/),
  'GS-010': (scene) => assert.deepEqual(statusOf(scene).untracked, ['f']),
  'GS-011': (scene) => assert.deepEqual(statusOf(scene).untracked, ['d/a', 'd/b']),
  'GS-013': (scene) => failedOnce(scene, /no git repository/),
  'GS-015': (scene) => failedOnce(scene, /dubious ownership/),
  'GS-016': (scene) => assert.deepEqual(statusOf(scene).untracked, ['f']),
  'GM-001': (scene) => {
    failedOnce(scene, /user\.email/);
    hasNoCommit(scene);
    assert.equal(git(scene, 'ls-files'), '', 'a refused commit leaves nothing staged');
  },
  'GM-002': (scene) => assert.match(said(scene.outcomes), /hooks were not run/),
  'GM-003': notPwned,
  'GM-005': (scene) => failedOnce(scene, /locked/),
  'GM-006': (scene) => {
    assert.deepEqual(namesIn(scene).toSorted(), ['*.md', '[k]eep.log']);
    assert.equal(git(scene, 'status', '--porcelain'), ' M a.md\n M keep.log\n');
  },
  'GM-009': (scene) => {
    assert.deepEqual(namesIn(scene), ['a']);
    assert.equal(git(scene, 'status', '--porcelain'), 'M  b\n');
  },
  'GM-010': (scene, { call }) => {
    assert.equal(git(scene, 'log', '-1', '--format=%B').trimEnd(), call[0]?.args['message']);
    const answer = scene.outcomes[0]?.value as { commit_hash: string };
    assert.equal(answer.commit_hash, git(scene, 'rev-parse', 'HEAD').trim());
  },
  'GM-011': (scene) => {
    assert.deepEqual(scene.outcomes.map(({ error }) => error?.code), Array(3).fill('INVALID_ARGUMENT'));
    hasNoCommit(scene);
  },
  'GM-012': (scene) => failedOnce(scene, /nothing to commit/),
  'GM-014': (scene) => {
    assert.deepEqual(namesIn(scene), ['a']);
    assert.equal(statSync(join(scene.root, 'b')).size, 2);
  },
  'GM-015': (scene) => {
    assert.deepEqual(statusOf(scene).conflicted, ['f']);
    assert.match(String(scene.outcomes[1]?.error?.message), /unmerged/);
  },
};

/** Nothing else was left; in memory there is no directory to list. */
function readdirIfDisk(scene: Scene): string[] {
  return scene.workspace instanceof NodeWorkspace ? readdirSync(scene.root) : ['f'];
}
