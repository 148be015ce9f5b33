/**
 * Generated patterns and lines: grep's translation and the running V8 say the same, or the pattern is refused by name.
 * CROFT_REGEX_PAIRS sets how many pairs, CROFT_REGEX_SEED where to start.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { regexTest } from '#native';
import { random, type Random } from './support/random.js';

const PAIRS = Number(process.env['CROFT_REGEX_PAIRS'] ?? 20_000);
const SEED = Number(process.env['CROFT_REGEX_SEED'] ?? 1);
const LINES_PER_PATTERN = 8;

// No character beyond U+FFFF: there grep takes whole characters, V8 without the u flag halves (docs/limits.md).
const CHARACTERS = [...'aabbcdABCk\u212aKs\u017fSéÉßẞµμΜíÍσςΣ01_- \t.,;:{}[]()|^$*+?/\\&~#@!<>="\'', '\r', '\u2028', '\u2029', '\ufeff', '\u0085', '\u00a0', '日', '٣', '\u0000', '\u0008', '\u000b'];

const ESCAPES = ['\\d', '\\D', '\\w', '\\W', '\\s', '\\S', '\\t', '\\r', '\\v', '\\f', '\\0', '\\x41', '\\x4', '\\u0061', '\\u00e9', '\\u00', '\\cA', '\\c', '\\c1',
  '\\-', '\\_', '\\a', '\\z', '\\A', '\\.', '\\/', '\\]', '\\[', '\\{', '\\}', '\\(', '\\)', '\\|', '\\^', '\\$', '\\*', '\\+', '\\?', '\\\\', '\\8', '\\07', '\\12', '\\377', '\\400', '\\k', '\\p{L}', '\\u{61}', '\\e', '\\Z', '\\G', '\\h', '\\R', '\\X', '\\Q', '\\E'];

const pick = <T>(next: Random, from: readonly T[]): T => from[next(from.length)] as T;

const SYNTAX = /[\\^$.*+?()[\]{}|/]/;

function literal(next: Random): string {
  const c = pick(next, CHARACTERS);
  return SYNTAX.test(c) && next(3) > 0 ? `\\${c}` : c;
}

function classItem(next: Random): string {
  switch (next(8)) {
    case 0: return pick(next, ['a-c', 'A-Z', '0-9', 'à-ÿ', 'k-s', ' -~', '\\u0080-\\uffff', '\\x00-\\x7f', 'a-', '-a', '+--', 'Α-Ω']);
    case 1: return pick(next, ['[:alpha:]', '&&', '--', '~~', '[', '^', '.', '$', '(', '|', '{', '\\b', '\\B', '[a', '\\w-x', 'a-\\d', '\\c', '\\c_', '\\cA']);
    case 2: case 3: return pick(next, ESCAPES.filter((one) => !/^\\[kp]/.test(one)));
    default: return pick(next, CHARACTERS).replace(/[\]\\]/, '\\$&');
  }
}

function atom(next: Random, depth: number): string {
  switch (next(depth > 3 ? 9 : 15)) {
    case 0: case 1: case 2: case 3: return literal(next);
    case 4: return '.';
    case 5: return pick(next, ESCAPES);
    case 6: return `[${next(4) === 0 ? '^' : ''}${Array.from({ length: next(4) }, () => classItem(next)).join('')}]`;
    case 7: return pick(next, ['\\b', '\\B', '^', '$', '\\b', '']);
    case 8: return pick(next, ['{', '}', ']', '{,2}', '{1', 'a{2', '\\1', '\\2', '\\k<n>', '\\3']);
    case 9: case 10: return `(${disjunction(next, depth + 1)})`;
    case 11: return `(?:${disjunction(next, depth + 1)})`;
    case 12: return `(?<n>${disjunction(next, depth + 1)})`;
    case 13: return `(?${pick(next, ['=', '!'])}${disjunction(next, depth + 1)})`;
    default: return `(?<${pick(next, ['=', '!'])}${disjunction(next, depth + 1)})`;
  }
}

function disjunction(next: Random, depth: number): string {
  const alternatives = Array.from({ length: next(5) === 0 ? 2 + next(2) : 1 }, () =>
    Array.from({ length: next(depth === 0 ? 5 : 4) }, () => atom(next, depth) + pick(next, ['', '', '', '', '*', '+', '?', '*?', '+?', '??', '{2}', '{0}', '{1,2}', '{0,}', '{2,}?'])).join(''),
  );
  return alternatives.join('|');
}

/** Half of the lines hold pieces of the pattern's own text, so that a good part of them match. */
function line(next: Random, pattern: string): string {
  const length = next(9);
  const own = [...pattern.replace(/[\n]/g, '')];
  return Array.from({ length }, () => (own.length > 0 && next(2) === 0 ? pick(next, own) : pick(next, CHARACTERS))).join('');
}

function compile(pattern: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(pattern, flags);
  } catch {
    return undefined;
  }
}

test(`${PAIRS} generated pairs of pattern and line agree with V8`, async () => {
  const next = random(SEED);
  const counts = { pairs: 0, matched: 0, undecided: 0, patterns: 0, refused: new Map<string, number>() };
  while (counts.pairs < PAIRS) {
    const pattern = disjunction(next, 0);
    const ignoreCase = next(4) === 0;
    const lines = Array.from({ length: LINES_PER_PATTERN }, () => line(next, pattern));
    const judge = compile(pattern, ignoreCase ? 'i' : '');
    if (!judge || pattern === '') continue;
    counts.patterns += 1;
    counts.pairs += lines.length;
    let found: number[];
    try {
      found = await regexTest(pattern, ignoreCase, lines);
    } catch (error) {
      const reason = String((error as Error).message);
      assert.match(reason, /UNSUPPORTED_REGEX/, `/${pattern}/${ignoreCase ? 'i' : ''}: ${reason}`);
      const name = /uses (.*?), which/.exec(reason)?.[1] ?? /exactly: (.*?)"/.exec(reason)?.[1] ?? reason;
      counts.refused.set(name, (counts.refused.get(name) ?? 0) + 1);
      continue;
    }
    lines.forEach((text, index) => {
      if (found[index] === 2) {
        counts.undecided += 1;
        return;
      }
      const expected = judge.test(text);
      counts.matched += expected ? 1 : 0;
      assert.equal(found[index] === 1, expected, `/${pattern}/${ignoreCase ? 'i' : ''} on ${JSON.stringify(text)}`);
    });
  }
  console.log(counts);
  const refused = [...counts.refused.values()].reduce((sum, n) => sum + n, 0);
  assert.ok(counts.matched > counts.pairs / 10, 'too few lines match to say anything');
  assert.ok(refused < counts.patterns / 20, 'too many patterns are refused');
  assert.ok(counts.undecided < counts.pairs / 1000, 'too many lines are left undecided');
});
