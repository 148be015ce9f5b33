// Grep beside ripgrep spawned and plain JavaScript (32 files at a time), on some 21,000 files, 8,000 of them not ignored.
import { spawn } from 'node:child_process';
import { promises as fs } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { NodeWorkspace } from 'croft';
import { corpus, lines } from './corpus.mjs';
import { compare } from './measure.mjs';

const MAX_FILE_BYTES = 2 * 1024 * 1024;
const { root, rgPath } = await corpus();
const workspace = new NodeWorkspace({ root });
const wide = { maxResults: 10_000_000, maxFilesScanned: 1_000_000 };
const everything = { ...wide, gitignore: false, ignore: [] };

async function plainFiles(folder, found = []) {
  for (const entry of await fs.readdir(`${root}/${folder}`, { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && !['node_modules', '.git', 'dist', 'coverage', '.cache'].includes(entry.name)) await plainFiles(path, found);
    else if (entry.isFile() && !entry.name.endsWith('.log')) found.push(path);
  }
  return found;
}

async function plainGrep(regex) {
  const files = await plainFiles('');
  const found = [];
  const worker = async () => {
    for (let path = files.pop(); path !== undefined; path = files.pop()) {
      const bytes = await fs.readFile(`${root}/${path}`);
      if (bytes.length > MAX_FILE_BYTES || bytes.subarray(0, 8192).includes(0)) continue;
      const text = bytes.toString('utf8');
      if (!regex.test(text)) continue;
      text.split('\n').forEach((line, index) => regex.test(line) && found.push(`${path}:${index + 1}: ${line}`));
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return found;
}

const rg = (...args) => () => lines(spawn, rgPath, ['--hidden', '--no-heading', '-n', '--max-filesize', '2M', ...args], root);
const croft = (pattern, options) => async () => (await workspace.grep(pattern, options)).matches;

async function measured(title, contestants, { exact = true } = {}) {
  const counts = {};
  for (const [name, run] of Object.entries(contestants)) counts[name] = (await run()).length;
  const [expected] = Object.values(counts);
  for (const [name, count] of Object.entries(counts)) if (exact && count !== expected) throw new Error(`${title}: ${name} finds ${count}, croft ${expected}`);
  await compare(`${title}: ${expected} lines`, contestants);
}

await measured('rare literal', { croft: croft('zzRAREzz', wide), ripgrep: rg('-F', 'zzRAREzz'), 'JS, 32 at a time': () => plainGrep(/zzRAREzz/) });
await measured('-i \\btimeout\\b', {
  croft: croft('\\btimeout\\b', { ...wide, ignoreCase: true }),
  ripgrep: rg('-i', '\\btimeout\\b'),
  'JS, 32 at a time': () => plainGrep(/\btimeout\b/i),
});
await measured('three names', {
  croft: croft('subscribeOn|observeOn|throttleTime', wide),
  ripgrep: rg('subscribeOn|observeOn|throttleTime'),
  'JS, 32 at a time': () => plainGrep(/subscribeOn|observeOn|throttleTime/),
});
await measured('\\bparse\\w+\\(', {
  croft: croft('\\bparse\\w+\\(', wide),
  ripgrep: rg('\\bparse\\w+\\('),
  'JS, 32 at a time': () => plainGrep(/\bparse\w+\(/),
});
await measured('no literal: [A-Z]{3,}_[0-9]+', {
  croft: croft('[A-Z]{3,}_[0-9]+', wide),
  ripgrep: rg('[A-Z]{3,}_[0-9]+'),
  'JS, 32 at a time': () => plainGrep(/[A-Z]{3,}_[0-9]+/),
});
// croft leaves lines over 4 KiB to patterns without look-around: the three of the minified files.
await measured('look-ahead (ripgrep -P)', {
  croft: croft('\\bparse(?!Int|Float)\\w+\\(', wide),
  ripgrep: rg('-P', '\\bparse(?!Int|Float)\\w+\\('),
  'JS, 32 at a time': () => plainGrep(/\bparse(?!Int|Float)\w+\(/),
}, { exact: false });
// ripgrep has no cap over all files: it is given time to print the first 200 lines, as tools that spawn it do.
const capped = () => new Promise((resolve) => {
  const child = spawn(rgPath, ['--hidden', '--no-heading', '-n', 'import'], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
  let found = [];
  let text = '';
  child.stdout.on('data', (piece) => {
    text += piece;
    found = text.split('\n');
    if (found.length > 200) child.kill('SIGKILL');
  });
  child.on('close', () => resolve(found.slice(0, 200)));
});
await measured('import, capped at 200', { croft: croft('import', { maxResults: 200, maxFilesScanned: 1_000_000 }), ripgrep: capped }, { exact: false });
await measured('rare literal, everything', { croft: croft('zzRAREzz', everything), ripgrep: rg('--no-ignore', '-F', 'zzRAREzz') });

const delay = monitorEventLoopDelay({ resolution: 1 });
await new Promise((resolve) => setTimeout(resolve, 50));
delay.enable();
for (let i = 0; i < 10; i++) await workspace.grep('[A-Z]{3,}_[0-9]+', { ...everything, maxResults: 200 });
for (let i = 0; i < 10; i++) await workspace.grep('zzRAREzz', everything);
delay.disable();
console.log(`\nevent loop while everything is searched: p99 ${(delay.percentile(99) / 1e6).toFixed(2)} ms, longest ${(delay.max / 1e6).toFixed(2)} ms (a 1 ms timer)`);
await workspace.close();
