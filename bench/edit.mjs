// A list of edits and a large patch on a 5 MB file, beside the npm `diff` package and `git apply` making the same change.
// Each has a file of its own and goes forth and back; what each makes is compared byte for byte before any time is taken.
//   node bench/edit.mjs             CROFT_BENCH_DIR=/dev/shm measures on tmpfs
import { execFile, execFileSync } from 'node:child_process';
import { promises as fs, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NodeWorkspace } from 'croft';
import { applyPatch } from 'diff';
import { compare } from './measure.mjs';

const LINES = 84_000;
const CONTEXT = 3;
const run = promisify(execFile);
const root = mkdtempSync(join(process.env.CROFT_BENCH_DIR ?? tmpdir(), 'croft-bench-'));
const workspace = new NodeWorkspace({ root });
const at = (name) => join(root, name);

const line = (n) => `export const value${n} = compute(alpha, beta, gamma); // ${n % 7}`;
const changed = (n) => `export const value${n} = compute(alpha, delta); // changed`;
const lines = Array.from({ length: LINES }, (_, n) => line(n));
const sites = (count) => Array.from({ length: count }, (_, k) => Math.floor(((k + 0.5) * LINES) / count));

function withChanges(places) {
  const after = [...lines];
  for (const n of places) after[n] = changed(n);
  return after;
}

/** One hunk a place, `shift` lines away from where it says. */
function patch(file, places, from, to, shift) {
  const hunks = places.map((n) => {
    const start = n - CONTEXT + 1 + shift;
    const body = [...from.slice(n - CONTEXT, n).map((text) => ` ${text}`), `-${from[n]}`, `+${to[n]}`, ...from.slice(n + 1, n + 1 + CONTEXT).map((text) => ` ${text}`)];
    return `@@ -${start},${2 * CONTEXT + 1} +${start},${2 * CONTEXT + 1} @@\n${body.join('\n')}\n`;
  });
  return `--- a/${file}\n+++ b/${file}\n${hunks.join('')}`;
}

async function replaceFile(path, content, sync) {
  const temp = `${path}.${process.pid}.tmp`;
  const handle = await fs.open(temp, 'wx');
  await handle.writeFile(content);
  if (sync) await handle.sync();
  await handle.close();
  await fs.rename(temp, path);
}

async function withDiffPackage(file, text, sync) {
  const after = applyPatch(await fs.readFile(at(file), 'utf8'), text);
  if (after === false) throw new Error('the patch does not apply');
  await replaceFile(at(file), after, sync);
}

/** What one writes by hand for a list of edits. */
async function withReplace(file, edits) {
  let text = await fs.readFile(at(file), 'utf8');
  for (const { oldString, newString } of edits) {
    const first = text.indexOf(oldString);
    if (first < 0 || text.indexOf(oldString, first + 1) >= 0) throw new Error('not unique');
    text = text.slice(0, first) + newString + text.slice(first + oldString.length);
  }
  await replaceFile(at(file), text, false);
}

const BY_DIFF = 'diff applyPatch, temp+rename';

/** `ways`: name to a function of file and direction. Each is seen to make the same bytes, forth and back, first. */
async function race(title, before, after, ways) {
  const contestants = {};
  for (const [index, [name, change]] of Object.entries(ways).entries()) {
    const file = `f${index}.ts`;
    writeFileSync(at(file), before);
    for (const [back, expected] of [[false, after], [true, before]]) {
      await change(file, back);
      if (!readFileSync(at(file)).equals(expected)) throw new Error(`${title}: ${name} made other bytes`);
    }
    let calls = 0;
    contestants[name] = () => change(file, calls++ % 2 === 1);
  }
  await compare(title, contestants, { rounds: 15 });
}

async function multiEdit(count) {
  const places = sites(count);
  const after = withChanges(places);
  const edits = { false: places.map((n) => ({ oldString: line(n), newString: changed(n) })), true: places.map((n) => ({ oldString: changed(n), newString: line(n) })) };
  const both = patches(places, after, 0);
  await race(`multi edit: ${count} edits in 5 MB`, bytes(lines), bytes(after), {
    'croft multiEdit (fsync)': (file, back) => workspace.multiEdit(file, edits[back]),
    [BY_DIFF]: (file, back) => withDiffPackage(file, both(file, back), false),
    'git apply': (file, back) => gitApply(both(file, back), `${count}-${file}-${back}.patch`),
    'String indexOf+slice, temp+rename': (file, back) => withReplace(file, edits[back]),
  });
}

async function largePatch(count, shift, title) {
  const places = sites(count);
  const after = withChanges(places);
  const both = patches(places, after, shift);
  await race(title, bytes(lines), bytes(after), {
    'croft applyPatch (fsync)': (file, back) => workspace.applyPatch(both(file, back)),
    [BY_DIFF]: (file, back) => withDiffPackage(file, both(file, back), false),
    'git apply': (file, back) => gitApply(both(file, back), `${count}-${shift}-${file}-${back}.patch`),
    'diff applyPatch, temp+fsync+rename': (file, back) => withDiffPackage(file, both(file, back), true),
  });
}

/** Made once for each file and direction. */
function patches(places, after, shift) {
  const made = new Map();
  return (file, back) => {
    const key = `${file}${back}`;
    if (!made.has(key)) made.set(key, back ? patch(file, places, after, lines, shift) : patch(file, places, lines, after, shift));
    return made.get(key);
  };
}

const written = new Set();

async function gitApply(text, name) {
  if (!written.has(name)) writeFileSync(at(name), text);
  written.add(name);
  await run('git', ['apply', name], { cwd: root });
}

const bytes = (list) => Buffer.from(`${list.join('\n')}\n`);

try {
  const size = bytes(lines).length;
  console.log(`${(size / 2 ** 20).toFixed(1)} MiB, ${LINES} lines, ${execFileSync('git', ['--version'], { encoding: 'utf8' }).trim()}, Node ${process.version}`);
  await multiEdit(10);
  await multiEdit(100);
  await largePatch(1, 0, 'patch: 1 hunk in 5 MB');
  await largePatch(1000, 0, 'patch: 1,000 hunks in 5 MB');
  await largePatch(1000, 10, 'patch: 1,000 hunks, each 10 lines from where it says');
} finally {
  await workspace.close();
  rmSync(root, { recursive: true, force: true });
}
