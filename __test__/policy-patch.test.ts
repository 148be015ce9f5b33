// A patch that touches a denied path changes nothing at all, in either format, on disk and in memory.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createFsTools, MemoryWorkspace, NodeWorkspace, PermissionDeniedError, type Workspace } from 'croft';

const FILES: Record<string, string> = { 'a.txt': 'old\n', 'sub/b.txt': 'old\n', '.env': 'old\n', 'sub/.env.local': 'old\n', 'secrets/key': 'old\n', 'build/out/z': 'old\n', 'build/log': 'old\n' };
const DENIED = { deniedPaths: ['.env*', 'secrets', 'build/out'] };

const unified = {
  update: (path: string): string => `--- a/${path}\n+++ b/${path}\n@@ -1 +1 @@\n-old\n+new\n`,
  add: (path: string): string => `diff --git a/${path} b/${path}\nnew file mode 100644\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+new\n`,
  remove: (path: string): string => `diff --git a/${path} b/${path}\ndeleted file mode 100644\n--- a/${path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n`,
  move: (from: string, to: string): string => `diff --git a/${from} b/${to}\nsimilarity index 100%\nrename from ${from}\nrename to ${to}\n`,
  moveAndChange: (from: string, to: string): string => `diff --git a/${from} b/${to}\nrename from ${from}\nrename to ${to}\n--- a/${from}\n+++ b/${to}\n@@ -1 +1 @@\n-old\n+new\n`,
  copy: (from: string, to: string): string => `diff --git a/${from} b/${to}\nsimilarity index 100%\ncopy from ${from}\ncopy to ${to}\n`,
};

const enveloped = (body: string): string => `*** Begin Patch\n${body}*** End Patch\n`;
const v4a = {
  update: (path: string): string => `*** Update File: ${path}\n@@\n-old\n+new\n`,
  add: (path: string): string => `*** Add File: ${path}\n+new\n`,
  remove: (path: string): string => `*** Delete File: ${path}\n`,
  moveAndChange: (from: string, to: string): string => `*** Update File: ${from}\n*** Move to: ${to}\n@@\n-old\n+new\n`,
};

/** Each touches `path` beside a file that may be changed, which then must not change either. */
function patches(path: string): string[] {
  const lines = [unified.update(path), unified.remove(path), unified.move(path, 'moved'), unified.moveAndChange(path, 'moved'), unified.copy(path, 'copied')];
  const into = [unified.add(`${path}.new`), unified.move('sub/b.txt', `${path}.new`), unified.moveAndChange('sub/b.txt', `${path}.new`), unified.copy('sub/b.txt', `${path}.new`)];
  const bodies = [v4a.update(path), v4a.remove(path), v4a.moveAndChange(path, 'moved'), v4a.add(`${path}.new`), v4a.moveAndChange('sub/b.txt', `${path}.new`)];
  return [...[...lines, ...into].map((patch) => unified.update('a.txt') + patch), ...bodies.map((body) => enveloped(v4a.update('a.txt') + body))];
}

const denied = (error: unknown): boolean => error instanceof PermissionDeniedError && error.code === 'POLICY_DENIED';

async function refuses(workspace: Workspace, path: string, snapshot: () => unknown): Promise<void> {
  const tool = createFsTools(workspace, { include: ['apply_patch'] }).find(({ name }) => name === 'apply_patch');
  assert.ok(tool);
  const before = snapshot();
  for (const patch of patches(path)) {
    assert.equal(await tool.needsApproval({ patch }), false, 'what is denied is not offered');
    await assert.rejects(tool.execute({ patch }), denied, patch);
    await assert.rejects(workspace.applyPatch(patch), denied, patch);
    assert.deepEqual(snapshot(), before, patch);
  }
}

interface Place {
  root: string;
  workspace: NodeWorkspace;
  snapshot(): Record<string, string>;
}

async function onDisk(run: (place: Place) => Promise<void>): Promise<void> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'croft-policy-patch-')));
  for (const [path, content] of Object.entries(FILES)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  const workspace = new NodeWorkspace({ root, ...DENIED });
  const snapshot = (): Record<string, string> => {
    const paths = (readdirSync(root, { recursive: true }) as string[]).filter((path) => statSync(join(root, path)).isFile());
    return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(root, path), 'utf8')]));
  };
  try {
    await run({ root, workspace, snapshot });
  } finally {
    await workspace.close();
    rmSync(root, { recursive: true, force: true });
  }
}

// `build/out/z.new` and `secrets/key.new` are as denied as what they lie in.
const PATHS = ['.env', 'sub/.env.local', 'secrets/key', 'build/out/z', './secrets//key'];

test('a patch that touches a denied path is refused whole, on disk', async () => {
  await onDisk(async ({ workspace, snapshot }) => {
    for (const path of PATHS) await refuses(workspace, path, snapshot);
  });
});

test('a patch that touches a denied path is refused whole, in memory', async () => {
  const workspace = new MemoryWorkspace({ files: FILES, ...DENIED });
  for (const path of PATHS) await refuses(workspace, path, () => workspace.snapshot());
});

// A workspace in memory has no links, so this has no twin there.
test('a patch reaches no denied path through a link, nor through a link of a denied name', async () => {
  await onDisk(async ({ root, workspace, snapshot }) => {
    symlinkSync('.env', join(root, 'innocent'));
    symlinkSync('secrets', join(root, 'folder'));
    symlinkSync('build', join(root, 'built'));
    symlinkSync('build/log', join(root, '.env.link'));
    for (const path of ['folder/key', 'built/out/z', '.env.link']) await refuses(workspace, path, snapshot);
    // `innocent.new` is a name like any other: only what touches the link itself is refused.
    const before = snapshot();
    const touching = [unified.update('innocent'), unified.remove('innocent'), unified.move('innocent', 'moved'), unified.copy('innocent', 'copied')];
    const bodies = [v4a.update('innocent'), v4a.remove('innocent'), v4a.moveAndChange('innocent', 'moved'), v4a.moveAndChange('a.txt', 'innocent')];
    for (const patch of [...touching, ...bodies.map(enveloped)]) await assert.rejects(workspace.applyPatch(patch), denied, patch);
    assert.deepEqual(snapshot(), before);
  });
});

test('the same patches apply to paths that are not denied', async () => {
  for (const patch of patches('build/log')) {
    const workspace = new MemoryWorkspace({ files: FILES, ...DENIED });
    await workspace.applyPatch(patch);
    assert.equal(await workspace.readFile('a.txt'), 'new\n', patch);
  }
  await onDisk(async ({ workspace }) => {
    await workspace.applyPatch(unified.moveAndChange('build/log', 'moved'));
    await workspace.applyPatch(enveloped(v4a.update('a.txt') + v4a.remove('sub/b.txt')));
    assert.equal(await workspace.readFile('moved'), 'new\n');
  });
});
