/** Generated trees and glob patterns, the same for one seed: names that are syntax elsewhere, patterns of every construct. */

import type { Random } from './random.js';

const pick = <T>(next: Random, from: readonly T[]): T => from[next(from.length)] as T;

const NAMES = ['a', 'b', 'ab', 'ba', 'abc', 'src', 'a.ts', 'b.tsx', 'ab.js', '.env', '.a', '.a.ts', '..a', 'a b', ' a', 'a.', 'A', 'B.ts',
  'é', 'é.ts', 'e\u0301', '日本', '日.ts', '📁', '📁a', '[a]', '[slug].tsx', '(a)', '{a,b}', '{a}', 'a{1..3}', 'a1', 'a2', '1', '٣', '*', 'a*b', '?', '!a', '#a', '-', 'a-b', ']', '@a', '+(a)', ','];
const FOLDERS = ['a', 'b', 'ab', 'src', '.git2', '.a', 'é', '📁', '[a]', '(a)', 'a b', 'a.ts', '{a,b}', '1'];

/** Paths of files; none is also a directory. */
export function tree(next: Random): string[] {
  const folders = [''];
  for (let left = next(7); left > 0; left--) {
    const parent = pick(next, folders);
    if (parent.split('/').length < 5) folders.push(`${parent}${pick(next, FOLDERS)}/`);
  }
  const isFolder = (path: string): boolean => folders.some((folder) => folder.startsWith(`${path}/`));
  const files = new Set<string>();
  for (const folder of new Set(folders)) {
    for (let left = 1 + next(6); left > 0; left--) {
      const path = folder + pick(next, NAMES);
      if (!isFolder(path)) files.add(path);
    }
  }
  return [...files];
}

const CLASSES = ['[ab]', '[!a]', '[^b]', '[a-c]', '[!a-c]', '[a-]', '[-a]', '[]a]', '[!]a]', '[.]', '[é日]', '[!é]', '[à-ÿ]', '[📁a]', '[!📁]', '[z-a]', '[a', '[]', '[!]', '[^]', '[a/b]',
  '[[:digit:]]', '[[:alpha:]]', '[![:alpha:]]', '[[:upper:]]', '[[:nope:]]', '[\\]]', '[\\!a]', '[a\\-c]', '[*]', '[?]', '[{a,b}]', '[a,b]', '[!.]', '[A-Z]'];
const ESCAPES = ['\\*', '\\?', '\\[', '\\]', '\\{', '\\}', '\\,', '\\a', '\\\\', '\\!', '\\(', '\\.', '\\#'];
const PLAIN = ['a', 'b', 'ab', '.', '.ts', '.tsx', 'src', 'é', '日', '📁', ' ', '-', '(a)', '@', '+(a)', '!', '#', ',', ']', '}', '1', 'A', '!(a)', '*(a)', '?(a)'];

function piece(next: Random, depth: number): string {
  switch (next(12)) {
    case 0: case 1: case 2: return '*';
    case 3: return pick(next, ['?', '?', '??', '**', '***']);
    case 4: return pick(next, CLASSES);
    case 5: return pick(next, ESCAPES);
    case 6: return depth < 3 ? braces(next, depth + 1) : 'a';
    default: return pick(next, PLAIN);
  }
}

function braces(next: Random, depth: number): string {
  if (next(8) === 0) return pick(next, ['{1..3}', '{a..c}', '{a}', '{}', '{a,b', 'a}', '{,}', '{a,,b}', '{{a,b}}', '{{a},b}', '{1..3,a}', '{a,b}}', '{{a,b}']);
  const one = (): string => (next(6) === 0 ? `${name(next, depth)}/${name(next, depth)}` : Array.from({ length: next(3) }, () => piece(next, depth)).join(''));
  return `{${Array.from({ length: 2 + next(2) }, one).join(',')}}`;
}

function name(next: Random, depth: number): string {
  switch (next(8)) {
    case 0: case 1: return '**';
    case 2: return '*';
    case 3: return pick(next, FOLDERS);
    default: return Array.from({ length: 1 + next(3) }, () => piece(next, depth)).join('');
  }
}

/** Half of them are made of the tree's own names, so that a good part of them match. */
export function pattern(next: Random, files: readonly string[]): string {
  const own = next(2) === 0 ? pick(next, files).split('/') : Array.from({ length: 1 + next(3) }, () => name(next, 0));
  const parts = own.map((part) => (next(3) === 0 ? name(next, 0) : next(4) === 0 ? part.replace(/[[\]{}*?!\\]/g, '\\$&') : part));
  const glued = parts.join(next(20) === 0 ? '//' : '/');
  const around = next(30);
  if (around === 0) return `${glued}/`;
  if (around === 1) return `./${glued}`;
  if (around === 2) return `${glued}/.`;
  return around === 3 ? glued.replace('/', '/../') : glued;
}
