// Glob beside ripgrep spawned, fd where it is installed, fast-glob, tinyglobby and plain JavaScript, on trees of 1,100, 21,000 and 170,000
// files (bench/corpus.mjs).
import { spawn } from 'node:child_process';
import { promises as fs } from 'node:fs';
import { NodeWorkspace } from 'croft';
import { corpus, countFiles, lines } from './corpus.mjs';
import { compare } from './measure.mjs';

const { roots, rgPath, fastGlob, tinyglobby, fd } = await corpus();
if (!fd) console.log('fd is not installed here (npm has none): its rows are left out');
const wide = { maxResults: 1_000_000, maxFilesScanned: 1_000_000 };
const everything = { ...wide, gitignore: false, ignore: [] };
// What the tree's .gitignore leaves out, for the peers that do not read it.
const skipped = ['node_modules', '.git', 'dist', 'coverage', '.cache'];
const ignore = skipped.map((name) => `**/${name}/**`);
async function plain(root, folder, end, skip) {
  const found = [];
  for (const entry of await fs.readdir(`${root}/${folder}`, { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory() && !skip.includes(entry.name)) found.push(...(await plain(root, path, end, skip)));
    else if (entry.isFile() && entry.name.endsWith(end)) found.push(path);
  }
  return found;
}

/** Counts first: a tool that finds something else is not measured. */
async function measured(title, contestants, options) {
  const counts = {};
  for (const [name, run] of Object.entries(contestants)) counts[name] = (await run()).length;
  const expected = counts.croft;
  for (const [name, count] of Object.entries(counts)) if (count !== expected) throw new Error(`${title}: ${name} finds ${count}, croft ${expected}`);
  await compare(`${title}: ${expected} paths`, contestants, options);
}

const rounds = { S: 25, M: 25, L: 9 };

for (const [size, root] of Object.entries(roots)) {
  console.log(`\n${size}: ${countFiles(root)} files, Node ${process.version}`);
  const workspace = new NodeWorkspace({ root });
  const croft = (pattern, options) => async () => (await workspace.glob(pattern, options)).paths;
  const rg = (...args) => () => lines(spawn, rgPath, ['--files', '--hidden', ...args], root);
  const withFd = (...args) => (fd ? { fd: () => lines(spawn, fd, ['--hidden', '--type', 'f', ...args], root) } : {});
  await measured(`${size} **/*.ts, ignored files left out`, {
    croft: croft('**/*.ts', wide),
    'ripgrep --files': rg('-g', '*.ts'),
    ...withFd('\\.ts$'),
    'fast-glob, told what to skip': () => fastGlob('**/*.ts', { cwd: root, dot: true, ignore }),
    'tinyglobby, told what to skip': () => tinyglobby('**/*.ts', { cwd: root, dot: true, ignore, expandDirectories: false }),
    'readdir, told what to skip': () => plain(root, '', '.ts', skipped),
  }, { rounds: rounds[size] });
  if (size === 'M') {
    await measured('M **/*.ts, everything', {
      croft: croft('**/*.ts', everything),
      'fast-glob': () => fastGlob('**/*.ts', { cwd: root, dot: true }),
      'ripgrep --files': rg('--no-ignore', '-g', '*.ts'),
      ...withFd('--no-ignore', '\\.ts$'),
      tinyglobby: () => tinyglobby('**/*.ts', { cwd: root, dot: true, expandDirectories: false }),
      readdir: () => plain(root, '', '.ts', []),
    }, { rounds: 15 });
    await measured('M **/package.json, everything', {
      croft: croft('**/package.json', everything),
      'ripgrep --files': rg('--no-ignore', '-g', 'package.json'),
      ...withFd('--no-ignore', '^package\\.json$'),
      'fast-glob': () => fastGlob('**/package.json', { cwd: root, dot: true }),
      tinyglobby: () => tinyglobby('**/package.json', { cwd: root, dot: true, expandDirectories: false }),
    }, { rounds: 15 });
    const prefixed = 'packages/rxjs/src/**/*.{ts,tsx}';
    await measured(`M ${prefixed}`, {
      croft: croft(prefixed, wide),
      tinyglobby: () => tinyglobby(prefixed, { cwd: root, dot: true, expandDirectories: false }),
      'fast-glob': () => fastGlob(prefixed, { cwd: root, dot: true }),
      'ripgrep --files': rg('-g', `/${prefixed}`),
    });
  }
  await workspace.close();
}
