// V4A diffs beside the reader of the OpenAI Agents SDK, and an `Editor` of that SDK over a workspace. croft is stricter
// (docs/patches.md): where it makes a text, it is the same text; where lines are not repeated, it makes one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyDiff, type ApplyPatchOperation, type Editor } from '@openai/agents-core';
import { applyV4aDiff, MemoryWorkspace, WorkspaceError } from 'croft';
import { FUZZ_SEED } from './support/fuzz.js';

/** Small and good enough to choose among a few. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Made {
  before: string;
  diff: string;
}

/** A file, and a diff of one to three chunks with one to three context lines; `words` says how often lines repeat. */
function make(next: (below: number) => number, words: number): Made {
  const lines = Array.from({ length: 12 + next(20) }, (_, n) => (words > 1000 ? `line ${n} ${next(words)}` : `w${next(words)}`));
  const chunks: string[] = [];
  for (let at = 0; chunks.length < 1 + next(3); ) {
    const lead = 1 + next(3);
    const start = at + next(4);
    if (start + lead + 4 > lines.length) break;
    const end = start + lead + 1 + next(2);
    const body = [
      ...lines.slice(start, start + lead).map((line) => ` ${line}`),
      ...lines.slice(start + lead, end).map((line) => `-${line}`),
      ...Array.from({ length: next(3) }, (_, n) => `+new ${chunks.length} ${n}`),
      ...lines.slice(end, end + 1).map((line) => ` ${line}`),
    ];
    const anchor = start > at && next(3) === 0 ? ` ${lines[start - 1]}` : '';
    chunks.push(`@@${anchor}\n${body.join('\n')}\n`);
    at = end + 1;
  }
  const crlf = next(4) === 0;
  const text = lines.join('\n') + (next(4) === 0 ? '' : '\n');
  return { before: crlf ? text.replaceAll('\n', '\r\n') : text, diff: chunks.join('') };
}

function attempt(run: () => string): { text?: string; error?: unknown } {
  try {
    return { text: run() };
  } catch (error) {
    return { error };
  }
}

test('a diff of lines that are not repeated makes the text that the SDK makes', () => {
  const next = random(FUZZ_SEED);
  for (let i = 0; i < 5000; i++) {
    const { before, diff } = make(next, 1_000_000);
    assert.equal(applyV4aDiff(before, diff), applyDiff(before, diff), JSON.stringify({ before, diff }));
  }
});

test('a diff of repeated lines makes the text that the SDK makes, or is refused', () => {
  const next = random(FUZZ_SEED + 1);
  let [same, refused] = [0, 0];
  for (let i = 0; i < 5000; i++) {
    const { before, diff } = make(next, 4 + next(12));
    const [ours, theirs] = [attempt(() => applyV4aDiff(before, diff)), attempt(() => applyDiff(before, diff))];
    if (ours.error === undefined) {
      assert.equal(ours.text, theirs.text, JSON.stringify({ before, diff }));
      same++;
    } else {
      assert.ok(ours.error instanceof WorkspaceError && ours.error.code === 'PATCH_CONFLICT', String(ours.error));
      refused++;
    }
  }
  assert.ok(same > 4000 && refused > 20, `${same} the same, ${refused} refused`);
});

test('a created file is what the SDK makes of it', () => {
  for (const diff of ['+hello\n+world\n', '+hello\n+\n', '+', '+a', '+ a\n++b\n+-c\n']) assert.equal(applyV4aDiff(undefined, diff), applyDiff('', diff, 'create'), diff);
  for (const diff of ['hello\n', '+a\nb\n', '+a\n c\n']) {
    assert.throws(() => applyDiff('', diff, 'create'));
    assert.throws(() => applyV4aDiff(undefined, diff), { code: 'PATCH_INVALID' });
  }
});

/** What the SDK takes and croft does not, by rule. */
test('looks alike, fits twice or says not where: refused, not guessed', () => {
  for (const [before, diff] of [
    ['  a\n  b\n', '@@\n a\n-b\n+B\n'],
    ['a \nb\n', '@@\n a\n-b\n+B\n'],
    ['x\ny\nx\ny\n', '@@\n x\n-y\n+Y\n'],
    ['a\nb\n', '@@\n+x\n'],
    ['a\nb\n', '@@ nowhere\n a\n-b\n+B\n'],
  ] as const) {
    assert.equal(typeof applyDiff(before, diff), 'string');
    assert.throws(() => applyV4aDiff(before, diff), { code: 'PATCH_CONFLICT' }, diff);
  }
  assert.equal(applyV4aDiff('  a\n  b\n', '@@\n   a\n-  b\n+  B\n'), '  a\n  B\n');
});

function editorOver(workspace: MemoryWorkspace): Editor {
  return {
    createFile: async ({ path, diff }) => await workspace.writeFile(path, applyV4aDiff(undefined, diff), { createOnly: true }),
    updateFile: async ({ path, diff }) => await workspace.writeFile(path, applyV4aDiff(await workspace.readFile(path), diff)),
    deleteFile: async ({ path }) => await workspace.rm(path),
  };
}

test('the operations of an Editor of the SDK are carried out', async () => {
  const workspace = new MemoryWorkspace({ files: { 'a.py': 'class A:\n    def f(self):\n        return 1\n', gone: 'x\n' } });
  const editor = editorOver(workspace);
  const create: ApplyPatchOperation = { type: 'create_file', path: 'd/new.md', diff: '+# New\n+\n+text\n+\n' };
  const update: ApplyPatchOperation = { type: 'update_file', path: 'a.py', diff: '@@ class A:\n@@     def f(self):\n-        return 1\n+        return 2\n' };
  await editor.createFile(create);
  await editor.updateFile(update);
  await editor.deleteFile({ type: 'delete_file', path: 'gone' });
  assert.deepEqual(workspace.snapshot(), { 'a.py': 'class A:\n    def f(self):\n        return 2\n', 'd/new.md': '# New\n\ntext\n' });
  await assert.rejects(editor.createFile(create), { code: 'ALREADY_EXISTS' });
  await assert.rejects(editor.updateFile(update), { code: 'PATCH_CONFLICT' });
  await assert.rejects(editor.deleteFile({ type: 'delete_file', path: '../x' }), { code: 'OUTSIDE_WORKSPACE' });
});

/** The envelope as it is described for models: every kind of section, anchors one behind the other, the end of a file. */
test('an envelope with every kind of section is carried out', async () => {
  const workspace = new MemoryWorkspace({ files: {
    'src/app.py': 'class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        pass\n',
    'obsolete.txt': 'x\n',
    'old/name.txt': 'old\n',
    tail: 'first\nlast\n',
  } });
  await workspace.applyPatch([
    '*** Begin Patch', '*** Add File: hello.txt', '+Hello', '*** Update File: src/app.py', '@@ class B:', '@@     def run(self):', '-        pass', '+        return 1',
    '*** Update File: old/name.txt', '*** Move to: new/name.txt', '@@', '-old', '+new', '*** Update File: tail', '@@', ' first', '-last', '+end', '*** End of File', '*** Delete File: obsolete.txt', '*** End Patch',
  ].join('\n'));
  assert.deepEqual(workspace.snapshot(), {
    'hello.txt': 'Hello\n',
    'new/name.txt': 'new\n',
    'src/app.py': 'class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        return 1\n',
    tail: 'first\nend\n',
  });
});
