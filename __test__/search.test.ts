/** Searches through the workspace: typed results, limits, hard patterns, aborts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryWorkspace, WorkspaceError } from 'croft';

const HARD = ['(a+)+$', '(x+x+)+y', '(?:a|a)*c', '(a*)*(a*)*c', '(?=(a+)+$)b', '(a+)+$(?!x)', '^(?:a?){30}a{30}(?!b)', '(?:(?!zz).)*q',
  '(x+x+)+y(?=z)', '(\\w+\\s?)+$(?<!q)', '(?=.*b)(.*a){12}c', '(.*)(.*)(.*)(.*)x\\1', '((a*)*)*\\1c', '(.)(?=.*\\1.*\\1.*\\1.*z)'];

async function longestGap(body: () => Promise<void>): Promise<number> {
  let last = performance.now();
  let longest = 0;
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 10);
  await body();
  clearInterval(timer);
  return longest;
}

test('patterns that explode in backtracking engines answer or fail while the event loop goes on', async () => {
  const lines = [`${'a'.repeat(4000)}!`, 'ab'.repeat(2000), 'word word, '.repeat(360), 'x'.repeat(4090)];
  await using workspace = new MemoryWorkspace({ files: { 'hard.txt': lines.join('\n') } });
  const gap = await longestGap(async () => {
    for (const pattern of HARD) {
      try {
        await workspace.grep(pattern);
      } catch (error) {
        assert.ok(error instanceof WorkspaceError && error.code === 'SEARCH_LIMIT', `${pattern}: ${String(error)}`);
      }
    }
  });
  assert.ok(gap < 1000, `the event loop stood still for ${gap} ms`);
});

test('a step limit fails with what was found before it', async () => {
  await using workspace = new MemoryWorkspace({ files: { '1.txt': 'aaxy\naa', '2.txt': `${'a'.repeat(4000)}xzy`, '3.txt': 'aaxy' } });
  await assert.rejects(workspace.grep('(.*)(.*)(.*)(.*)x\\1y'), (error) => {
    assert.ok(error instanceof WorkspaceError);
    assert.equal(error.code, 'SEARCH_LIMIT');
    assert.equal(error.path, '2.txt');
    assert.match(error.message, /2\.txt line 1[\s\S]*1 match\n1\.txt:1: aaxy$/);
    return true;
  });
});

test('a pattern is valid or not by the words of V8, and what has no translation is named', async () => {
  await using workspace = new MemoryWorkspace({ files: { a: 'x' } });
  const codes: [string, string][] = [['(', 'INVALID_REGEX'], ['a**', 'INVALID_REGEX'], ['[\\ud800-\\udbff]', 'UNSUPPORTED_REGEX'], ['(?:(a)|b)*\\1', 'UNSUPPORTED_REGEX']];
  for (const [pattern, code] of codes) await assert.rejects(workspace.grep(pattern), { name: 'WorkspaceError', code }, pattern);
  assert.equal((await workspace.grep('(', { literal: true })).matches.length, 0);
});

test('a match comes with its lines around it', async () => {
  await using workspace = new MemoryWorkspace({ files: { 'a.txt': 'one\ntwo\nthree\nfour\nfive\n' } });
  const { matches, truncated, filesScanned } = await workspace.grep('^t', { context: 1 });
  assert.deepEqual([truncated, filesScanned], [false, 1]);
  const shape = matches.map(({ path, line, text, before, after }) => ({ path, line, text, before, after }));
  assert.deepEqual(shape, [
    { path: 'a.txt', line: 2, text: 'two', before: ['one'], after: ['three'] },
    { path: 'a.txt', line: 3, text: 'three', before: ['two'], after: ['four'] },
  ]);
});

test('an aborted search rejects with ABORTED, one aborted before starts nothing', async () => {
  const files = Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`d${i % 40}/f${i}.txt`, 'aaaaaaaaab\n'.repeat(400)]));
  await using workspace = new MemoryWorkspace({ files });
  const controller = new AbortController();
  const running = workspace.grep('(?=.*b)(.*a){9}c', { signal: controller.signal });
  controller.abort();
  await assert.rejects(running, { name: 'WorkspaceError', code: 'ABORTED' });
  await assert.rejects(workspace.glob('**', { signal: AbortSignal.abort() }), { code: 'ABORTED' });
});

test('a brace bomb and a long pattern are answered or refused at once', async () => {
  await using workspace = new MemoryWorkspace({ files: { a: 'x' } });
  assert.deepEqual((await workspace.glob('{a,b}'.repeat(25))).paths, []);
  await assert.rejects(workspace.glob('{a/,b/}'.repeat(25)), { code: 'INVALID_GLOB' });
  await assert.rejects(workspace.glob('a'.repeat(5000)), { code: 'INVALID_GLOB' });
});
