/** How the public-bug cases about glob, grep and ignore rules are read: what their `value` counts, and what they say in words. */
import assert from 'node:assert/strict';
import { createFsTools } from 'croft';
import { makeCall, said, type Case, type Outcome, type Scene } from './cases.js';

export const SEARCH_AREAS = ['glob', 'grep.regex', 'grep.time', 'grep.output', 'ignore'];

/** The cases' names of two arguments are not ours. */
const RENAMED: Record<string, string> = { include: 'glob', case_insensitive: 'ignore_case' };

export function renameSearchArguments(item: Case): Case {
  const rename = (args: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(args).map(([name, value]) => [RENAMED[name] ?? name, value]));
  return { ...item, call: item.call.map((call) => (call.tool === 'grep' ? { ...call, args: rename(call.args) } : call)) };
}

/** The lines of an answer that are not notes. */
export function answerLines({ value }: Outcome): string[] {
  return String(value ?? '').split('\n').filter((line) => line !== '' && !/^\[.*\]$/.test(line));
}

function matches(outcome: Outcome): { path: string; line: number }[] {
  return answerLines(outcome).map((line) => {
    const match = /^(.*?):(\d+): /.exec(line);
    assert.ok(match, `not path:line: text: ${line}`);
    return { path: String(match[1]), line: Number(match[2]) };
  });
}

/** `value` is a count of matching lines, or paths, or line numbers (over all calls), as the area has it. */
function checkValue({ area, expect, id }: Case, outcomes: readonly Outcome[]): void {
  const { value } = expect;
  if (value === undefined || id in CHECKS) return;
  if (typeof value === 'number') {
    for (const outcome of outcomes) assert.equal(matches(outcome).length, value, said([outcome]));
  } else if (area === 'grep.regex' || typeof (value as unknown[])[0] === 'number') {
    assert.deepEqual(outcomes.flatMap((outcome) => matches(outcome).map(({ line }) => line)), value);
  } else {
    for (const outcome of outcomes) {
      const found = outcome.call.tool === 'grep' ? matches(outcome).map(({ path }) => path) : answerLines(outcome);
      assert.deepEqual(found.filter((path) => !/(^|\/)\.gitignore$/.test(path)), value, said([outcome]));
    }
  }
}

const lines = (scene: Scene, index: number): string[] => answerLines(scene.outcomes[index] as Outcome);

type Check = (scene: Scene) => void;

/** What the cases leave open is decided here, as docs/limits.md has it. */
const CHECKS: Record<string, Check> = {
  'GB-012': (scene) => assert.deepEqual(lines(scene, 0), ['.cfg/x.json', '.env', 'a.ts']),
  'GB-004': (scene) => assert.deepEqual(lines(scene, 0), ['app/[slug]/page.tsx', 'app/s/page.tsx']),
  'GB-016': (scene) => assert.deepEqual(lines(scene, 0), ['{a,b']),
  'GB-017': (scene) => assert.deepEqual(lines(scene, 0), []),
  'GO-003': (scene) => {
    assert.deepEqual(lines(scene, 0), ['a.js:1: needle']);
    assert.deepEqual(lines(scene, 1), ['dist/b.js:1: needle']);
  },
  'GO-004': (scene) => {
    assert.deepEqual(scene.outcomes.map(({ error }) => error?.code), [undefined, undefined, undefined]);
    assert.deepEqual(lines(scene, 0), ['a.ts:1: n', 'src/[id].ts:1: n', 'src/b.ts:1: n', 'src/c.tsx:1: n']);
    assert.deepEqual(lines(scene, 1), ['src/[id].ts:1: n', 'src/b.ts:1: n', 'src/c.tsx:1: n']);
    assert.deepEqual(lines(scene, 2), ['src/[id].ts:1: n']);
  },
  'RX-021': (scene) => assert.deepEqual(scene.outcomes.map(({ error }) => error?.code), ['INVALID_REGEX']),
  'RX-030': (scene) => {
    assert.equal(scene.outcomes[0]?.error?.code, 'INVALID_REGEX');
    assert.match(said(scene.outcomes), /\/\(\/: Unterminated group/);
  },
  'RX-033': (scene) => {
    assert.deepEqual(lines(scene, 0), ['w.txt:1: foo']);
    assert.deepEqual(lines(scene, 1), ['w.txt:2: bar']);
  },
  'RX-034': (scene) => assert.deepEqual(lines(scene, 0), ['b.txt:1: end']),
  // Ignored means by pattern, here as in the docs; git goes on tracking the file.
  'GI-019': (scene) => assert.deepEqual(lines(scene, 1), ['u:1: n']),
  'GI-018': (scene) => assert.deepEqual(lines(scene, 0), ['.gitignore', 'b']),
};

export function checkSearch(item: Case, scene: Scene): void {
  checkValue(item, scene.outcomes);
  CHECKS[item.id]?.(scene);
}

/** The longest time between two turns of a 10 ms timer while `body` runs. */
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

export async function whileTheTimerTicks(scene: Scene): Promise<void> {
  const calls = [
    { tool: 'grep', args: { pattern: '(a*)*(a*)*c' } },
    { tool: 'grep', args: { pattern: '(?=.*b)(.*a){12}c', path: 'small.txt' } },
  ];
  // Larger than grep reads, the case's file is skipped; a smaller one makes the search do its work.
  await scene.workspace.writeFile('small.txt', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n'.repeat(60_000));
  const gap = await longestGap(async () => {
    for (const call of calls) await makeCall(scene, call);
  });
  assert.ok(gap < 1000, `the event loop stood still for ${gap} ms`);
}

/** Ends with ABORTED soon after the signal, or was done before it. */
export async function abortedSoon(scene: Scene): Promise<void> {
  await scene.workspace.writeFile('small.txt', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n'.repeat(60_000));
  const grep = createFsTools(scene.workspace).find(({ name }) => name === 'grep');
  const controller = new AbortController();
  let aborted = 0;
  setTimeout(() => {
    aborted = performance.now();
    controller.abort();
  }, 50);
  const input = { pattern: '(?=.*b)(.*a){12}c', path: 'small.txt' };
  const outcome = await grep?.execute(input, { signal: controller.signal }).then(() => 'done', (error: { code?: string }) => error.code);
  const late = aborted === 0 ? 0 : performance.now() - aborted;
  assert.ok(late < 2000, `settled ${late} ms after the signal`);
  assert.ok(['done', 'ABORTED', 'SEARCH_LIMIT'].includes(String(outcome)), String(outcome));
}
