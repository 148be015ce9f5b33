/**
 * Generated trees and patterns: a glob finds what minimatch lets through, or a rule of docs/search.md says why not.
 * CROFT_GLOB_TREES sets how many trees, CROFT_GLOB_SEED where to start.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { MemoryWorkspace, WorkspaceError } from 'croft';
import { minimatch } from 'minimatch';
import { pattern as generatePattern, tree } from './support/glob-generator.js';
import { random } from './support/random.js';

const TREES = Number(process.env['CROFT_GLOB_TREES'] ?? 2000);
const SEED = Number(process.env['CROFT_GLOB_SEED'] ?? 1);
const PATTERNS_PER_TREE = 8;

// Of minimatch's own extras: `+(a)`, `#` and a leading `!` are plain text here.
const OPTIONS = { dot: true, noext: true, nocomment: true, nonegate: true } as const;
const WIDE = { gitignore: false, ignore: [], maxResults: 100_000 };

type Difference = { pattern: string; path: string; ours: boolean };

/** What is ours is what minimatch says once a rule has rewritten the pattern, before or after its braces are written out. */
type Rule = { readonly docs: string; readonly before?: (pattern: string) => string; readonly after?: (expanded: string) => string };

/** Stands where a group began that holds neither `/` nor `**`: such a group stays inside its name. */
const SEAM = '\ue000';
const CLASS = /(?<!\\)\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]/\\])*\]/gu;

const RULES = {
  'empty names and dots': {
    docs: 'Empty names and `.` mean nothing: `./a//b` is `a/b`',
    after: (expanded) => expanded.split('/').filter((name) => name !== '' && name !== '.').join('/'),
  },
  'no comma, no group': { docs: '`{a}` and `{1..3}` are plain text', before: escapeLoneBraces },
  'classes before braces': { docs: 'A class is read before braces', before: (pattern) => pattern.replace(CLASS, (one) => one.replace(/[{},]/g, '\\$&')) },
  'stars that meet through braces': {
    docs: 'Stars that meet only where braces end or begin (`*{*,}`) make no `**`',
    before: markSeams,
    after: (expanded) => expanded.replace(/[*\ue000]*\ue000[*\ue000]*/g, (run) => (run.includes('*') ? '*' : '')),
  },
} satisfies Record<string, Rule>;

type Group = { open: number; close: number; commas: number };

/** Every brace that closes, with the commas directly inside. */
function groups(pattern: string): Group[] {
  const open: Group[] = [];
  const closed: Group[] = [];
  for (const { 0: token, index } of pattern.matchAll(/\\.|[{},]/gsu)) {
    const last = open.at(-1);
    if (token === '{') open.push({ open: index, close: -1, commas: 0 });
    else if (token === ',' && last) last.commas += 1;
    else if (token === '}' && last) closed.push({ ...(open.pop() as Group), close: index });
  }
  return closed;
}

function prefix(pattern: string, places: readonly number[], text: string): string {
  return [...places].sort((a, b) => b - a).reduce((whole, at) => whole.slice(0, at) + text + whole.slice(at), pattern);
}

function escapeLoneBraces(pattern: string): string {
  const lone = groups(pattern).filter(({ commas }) => commas === 0);
  return prefix(pattern, lone.flatMap(({ open, close }) => [open, close]), '\\');
}

function markSeams(pattern: string): string {
  const inName = groups(pattern).filter(({ open, close, commas }) => commas > 0 && !/\/|\*\*/.test(pattern.slice(open, close)));
  return prefix(pattern, inName.map(({ open }) => open), SEAM);
}

/** `undefined` where minimatch makes an invalid regular expression beside a class like `[[:alpha:]]`. */
function judge(path: string, pattern: string, rules: readonly Rule[] = []): boolean | undefined {
  const written = rules.reduce((text, { before }) => before?.(text) ?? text, pattern);
  const rewritten = minimatch.braceExpand(written, OPTIONS).map((one) => rules.reduce((text, { after }) => after?.(text) ?? text, one));
  try {
    return rewritten.some((one) => minimatch(path, one, { ...OPTIONS, nobrace: true }));
  } catch (error) {
    assert.ok(error instanceof SyntaxError && /\[:[a-z]+:\]/.test(pattern), `${pattern}: ${String(error)}`);
    return undefined;
  }
}

/** The rules that make minimatch say the same. */
function explained({ pattern, path, ours }: Difference): string[] | undefined {
  if (ours && RULES['empty names and dots'].after(pattern) === path) return ['own spelling'];
  const one = Object.entries<Rule>(RULES).find(([, rule]) => judge(path, pattern, [rule]) === ours);
  if (one) return [one[0]];
  return judge(path, pattern, Object.values(RULES)) === ours ? ['several rules'] : undefined;
}

test(`on ${TREES} generated trees a glob finds what minimatch lets through, or a written rule says why not`, async () => {
  const next = random(SEED);
  const seen = new Map<string, number>();
  const unexplained: Difference[] = [];
  const counts = { pairs: 0, found: 0, refused: 0 };
  for (let n = 0; n < TREES; n++) {
    const files = tree(next);
    await using workspace = new MemoryWorkspace({ files: Object.fromEntries(files.map((path) => [path, ''])) });
    for (let k = 0; k < PATTERNS_PER_TREE; k++) {
      const pattern = generatePattern(next, files);
      let ours: Set<string>;
      try {
        ours = new Set((await workspace.glob(pattern, WIDE)).paths);
      } catch (error) {
        assert.ok(error instanceof WorkspaceError && error.code === 'INVALID_GLOB', `${pattern}: ${String(error)}`);
        counts.refused += 1;
        continue;
      }
      counts.found += ours.size;
      for (const path of files) {
        counts.pairs += 1;
        const expected = judge(path, pattern);
        if (expected === undefined || ours.has(path) === expected) continue;
        const difference = { pattern, path, ours: ours.has(path) };
        const rules = explained(difference);
        if (!rules) unexplained.push(difference);
        rules?.forEach((name) => seen.set(name, (seen.get(name) ?? 0) + 1));
      }
    }
  }
  console.log(counts, seen);
  assert.deepEqual(unexplained, []);
  assert.ok(counts.found > counts.pairs / 20, 'too few paths match to say anything');
  assert.ok(counts.refused < (TREES * PATTERNS_PER_TREE) / 10, 'too many patterns are refused');
  const differences = [...seen.values()].reduce((sum, n) => sum + n, 0);
  assert.ok(differences < counts.pairs / 50, 'the rules explain away too much');
});

test('every rule is a sentence of docs/search.md', async () => {
  const text = (await readFile(new URL('../docs/search.md', import.meta.url), 'utf8')).replace(/\s+/g, ' ');
  for (const [name, { docs }] of Object.entries(RULES)) assert.ok(text.includes(docs), `${name}: ${docs}`);
});
