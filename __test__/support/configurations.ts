/**
 * The cases of confinement with several roots and with links denied. What a case expects stays; where the arrangement
 * itself decides, one of these rules does:
 *
 * 1. Paths are written absolutely. One that has `..` in it is refused as an absolute path, so it stays relative where
 *    a relative path reaches the same file; one that climbs out stays as it is.
 * 2. A further root's answers name absolute paths; they are compared less the root's own name.
 * 3. With links denied a call whose path goes through a link is `LINK_REFUSED`.
 */
import assert from 'node:assert/strict';
import { lstatSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import type { Case, Configuration, Scene } from './cases.js';

export const CONFINE_AREAS = ['confine.path', 'confine.symlink', 'confine.race', 'confine.special', 'confine.names', 'confine.git'];

const SEARCHES = ['glob', 'grep', 'list_dir'];

type Input = Record<string, unknown>;

/** `below`: how a relative path reaches the case's directory from the first root, if it does. */
const absolutely = (below: string | undefined): Configuration['adapt'] => (scene, { tool }, input) => {
  const path = input['path'] ?? (SEARCHES.includes(tool) ? '.' : undefined);
  if (typeof path !== 'string' || isAbsolute(path) || /^\.\.[/\\]/.test(path)) return { input };
  const absolute = { ...input, path: `${scene.root}/${path}` };
  if (!path.split('/').includes('..')) return { input: absolute };
  return below === undefined ? { input: absolute, byRule: 'OUTSIDE_WORKSPACE' } : { input: { ...input, path: below + path } };
};

function directory(path: string): string {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'lure.txt'), 'lure\n');
  return path;
}

export const CONFIGURATIONS: Configuration[] = [
  {
    name: 'the first of several roots, one of them inside it',
    leftOut: {},
    options: ({ root, tmp }) => ({ root, roots: [directory(join(tmp, 'further')), directory(join(root, 'inner'))] }),
    adapt: absolutely(''),
  },
  {
    name: 'a further root',
    leftOut: {},
    options: ({ root, tmp }) => ({ root: directory(join(tmp, 'first')), roots: [root, directory(join(root, 'inner'))] }),
    adapt: absolutely(undefined),
  },
  {
    name: 'a root inside another, which also holds what is outside of it',
    root: 'outer/ws',
    out: 'outer/out',
    leftOut: { 'CP-003': 'names a directory that is inside the outer root' },
    options: ({ root }) => ({ root: dirname(root), roots: [root] }),
    adapt: absolutely('ws/'),
  },
  {
    name: 'links denied',
    leftOut: {},
    options: ({ root }) => ({ root, symlinks: 'deny' }),
    adapt: (scene, _, input) => (goesThroughLink(scene, input) ? { input, byRule: 'LINK_REFUSED' } : { input }),
  },
];

/** Not while names are exchanged: what the path goes through is then different at every look. */
function goesThroughLink(scene: Scene, input: Input): boolean {
  if (scene.isRacing || typeof input['path'] !== 'string') return false;
  const names = input['path'].split('/').filter((name) => name !== '' && name !== '.');
  return !isAbsolute(input['path']) && names.some((_, at) => isLink(join(scene.root, ...names.slice(0, at + 1))));
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    // No such name, or one that no file can have.
    return false;
  }
}

/** Checks the calls that a rule decides and takes them away; what the case says about the answers as a whole goes with them. */
export function takeRefusalsByRule(item: Case, scene: Scene): Case {
  const { outcomes, configuration, root } = scene;
  if (!configuration) return item;
  for (const outcome of outcomes) if (typeof outcome.value === 'string') outcome.value = outcome.value.replaceAll(`${root}/`, '');
  const decided = outcomes.filter(({ byRule }) => byRule !== undefined);
  for (const { call, error, byRule } of decided) assert.equal(error?.code, byRule, `${call.tool} ${JSON.stringify(call.args)}`);
  if (decided.length === 0) return item;
  outcomes.splice(0, outcomes.length, ...outcomes.filter(({ byRule }) => byRule === undefined));
  const { lines: _lines, contains: _contains, ...expect } = item.expect;
  return { ...item, expect };
}
