// Makes the project: the source of the published package `ms` with one character changed, and a test of it.
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const RIGHT = 'var d = h * 24;';
const WRONG = 'var d = h * 42;';

export function makeProject() {
  const root = mkdtempSync(join(tmpdir(), 'croft-demo-'));
  cpSync(dirname(createRequire(import.meta.url).resolve('ms')), root, { recursive: true });
  cpSync(fileURLToPath(new URL('./project', import.meta.url)), root, { recursive: true });
  const file = join(root, 'index.js');
  const source = readFileSync(file, 'utf8');
  if (!source.includes(RIGHT)) throw new Error(`the demo expects "${RIGHT}" in ms/index.js`);
  writeFileSync(file, source.replace(RIGHT, WRONG));
  return root;
}
