// Grep beside ripgrep spawned and plain JavaScript (32 files at a time), on trees of 1,100, 21,000 and
// 170,000 files (bench/corpus.mjs). Two kinds of plain JavaScript: a regex on the whole text first, and line by line.
import { spawn } from 'node:child_process';
import { promises as fs } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { NodeWorkspace } from 'croft';
import { corpus, lines } from './corpus.mjs';
import { compare, percentile } from './measure.mjs';

const MAX_FILE_BYTES = 2 * 1024 * 1024;
const { root, roots, rgPath } = await corpus();
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

async function plainGrep(regex, { byLine = false } = {}) {
  const files = await plainFiles('');
  const found = [];
  const worker = async () => {
    for (let path = files.pop(); path !== undefined; path = files.pop()) {
      const bytes = await fs.readFile(`${root}/${path}`);
      if (bytes.length > MAX_FILE_BYTES || bytes.subarray(0, 8192).includes(0)) continue;
      const text = bytes.toString('utf8');
      if (!byLine && !regex.test(text)) continue;
      text.split('\n').forEach((line, index) => regex.test(line) && found.push(`${path}:${index + 1}: ${line}`));
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return found;
}

const rg = (...args) => () => lines(spawn, rgPath, ['--hidden', '--no-heading', '-n', '--max-filesize', '2M', ...args], root);
const croft = (pattern, options) => async () => (await workspace.grep(pattern, options)).matches;

async function measured(title, contestants, { exact = true, rounds = 15 } = {}) {
  const counts = {};
  for (const [name, run] of Object.entries(contestants)) counts[name] = (await run()).length;
  const [expected] = Object.values(counts);
  for (const [name, count] of Object.entries(counts)) if (exact && count !== expected) throw new Error(`${title}: ${name} finds ${count}, croft ${expected}`);
  await compare(`${title}: ${expected} lines`, contestants, { rounds });
}

for (const size of ['S', 'L']) {
  const elsewhere = new NodeWorkspace({ root: roots[size] });
  const files = ['--hidden', '--no-heading', '-n', '--max-filesize', '2M', '-F', 'zzRAREzz'];
  await measured(`${size} rare literal`, {
    croft: async () => (await elsewhere.grep('zzRAREzz', wide)).matches,
    ripgrep: () => lines(spawn, rgPath, files, roots[size]),
  }, { rounds: size === 'S' ? 25 : 9 });
  await elsewhere.close();
}
await measured('M rare literal, beside JavaScript', {
  croft: croft('zzRAREzz', wide),
  'JS, 32 at a time, line by line': () => plainGrep(/zzRAREzz/, { byLine: true }),
  'JS, 32 at a time': () => plainGrep(/zzRAREzz/),
});
await measured('M rare literal', { croft: croft('zzRAREzz', wide), ripgrep: rg('-F', 'zzRAREzz') });
await measured('M -i \\btimeout\\b', {
  croft: croft('\\btimeout\\b', { ...wide, ignoreCase: true }),
  ripgrep: rg('-i', '\\btimeout\\b'),
  'JS, 32 at a time': () => plainGrep(/\btimeout\b/i),
});
await measured('M three names', {
  croft: croft('subscribeOn|observeOn|throttleTime', wide),
  ripgrep: rg('subscribeOn|observeOn|throttleTime'),
  'JS, 32 at a time': () => plainGrep(/subscribeOn|observeOn|throttleTime/),
});
await measured('M \\bparse\\w+\\(', {
  croft: croft('\\bparse\\w+\\(', wide),
  ripgrep: rg('\\bparse\\w+\\('),
  'JS, 32 at a time': () => plainGrep(/\bparse\w+\(/),
});
await measured('M no literal: [A-Z]{3,}_[0-9]+', {
  croft: croft('[A-Z]{3,}_[0-9]+', wide),
  ripgrep: rg('[A-Z]{3,}_[0-9]+'),
  'JS, 32 at a time': () => plainGrep(/[A-Z]{3,}_[0-9]+/),
});
// croft leaves lines over 4 KiB to patterns without look-around: the three of the minified files.
await measured('M look-ahead (ripgrep -P)', {
  croft: croft('\\bparse(?!Int|Float)\\w+\\(', wide),
  ripgrep: rg('-P', '\\bparse(?!Int|Float)\\w+\\('),
  'JS, 32 at a time': () => plainGrep(/\bparse(?!Int|Float)\w+\(/),
}, { exact: false });
// ripgrep has no cap over all files: it is given time to print the first 200 lines, as tools that spawn it do.
const capped = (cwd) => () => new Promise((resolve) => {
  const child = spawn(rgPath, ['--hidden', '--no-heading', '-n', 'import'], { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  let found = [];
  let text = '';
  child.stdout.on('data', (piece) => {
    text += piece;
    found = text.split('\n');
    if (found.length > 200) child.kill('SIGKILL');
  });
  child.on('close', () => resolve(found.slice(0, 200)));
});
for (const size of ['S', 'M']) {
  const capping = new NodeWorkspace({ root: roots[size] });
  await measured(`${size} import, capped at 200`, {
    croft: async () => (await capping.grep('import', { maxResults: 200, maxFilesScanned: 1_000_000 })).matches,
    ripgrep: capped(roots[size]),
  }, { exact: false });
  await capping.close();
}
await measured('M rare literal, everything', { croft: croft('zzRAREzz', everything), ripgrep: rg('--no-ignore', '-F', 'zzRAREzz') });

/** The longest stall beside that of an idle loop and of ripgrep spawned: what is not croft's shows in those, too. */
async function stall(title, body) {
  const [delay, ofCall] = [monitorEventLoopDelay({ resolution: 1 }), monitorEventLoopDelay({ resolution: 1 })];
  delay.enable();
  ofCall.enable();
  const longest = [];
  const end = performance.now() + 3000;
  while (performance.now() < end) {
    await body();
    // The timer has had its turn, so that the end of the call counts too.
    await new Promise((resolve) => setTimeout(resolve, 3));
    longest.push(ofCall.max / 1e6);
    ofCall.reset();
  }
  delay.disable();
  ofCall.disable();
  console.log(`  ${title.padEnd(34)} p99 ${(delay.percentile(99) / 1e6).toFixed(2)} ms; longest in a call: median ${percentile(longest, 0.5).toFixed(2)} ms, all ${(delay.max / 1e6).toFixed(2)} ms`);
}
console.log('\nevent loop delay by a 1 ms timer, three seconds each');
for (let round = 0; round < 2; round++) {
  await stall('idle', () => new Promise((resolve) => setTimeout(resolve, 50)));
  await stall('croft, rare literal, everything', () => workspace.grep('zzRAREzz', everything));
  await stall('croft, 200 lines, everything', () => workspace.grep('[A-Z]{3,}_[0-9]+', { ...everything, maxResults: 200 }));
  await stall('ripgrep, everything', rg('--no-ignore', '-F', 'zzRAREzz'));
}
await workspace.close();
