// The trees that searches are measured on, built once from pinned packages in the system's temp directory, and the
// peers to measure against, installed beside them: they are no dependency of this package.
//   S  three packages out of M: 1,100 files, 33 MB, none of them ignored
//   M  eleven packages and what they need, four of them moved out of node_modules: 21,000 files, 8,000 not ignored
//   L  M eight times over, as eight folders of one repository: 170,000 files
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const base = join(process.env.CROFT_BENCH_DIR ?? tmpdir(), 'croft-bench-tree-1');
const TREE = ['date-fns@4.1.0', 'rxjs@7.8.2', 'lodash@4.17.21', 'core-js@3.40.0', 'typescript@5.9.2', 'three@0.170.0', '@babel/core@7.26.0', 'webpack@5.99.9', 'eslint@9.30.0', 'jest@29.7.0', '@types/node@22.15.0'];
const PEERS = ['@vscode/ripgrep@1.18.0', 'fast-glob@3.3.3', 'tinyglobby@0.2.15'];
/** Moved out of node_modules: what the project of the tree consists of. */
const SOURCES = ['rxjs', 'lodash', 'core-js', 'three'];
const IGNORED = ['node_modules/', 'dist/', '*.log', '.cache', 'coverage/', '/tmp', '.env*', '!.env.example'];

function install(folder, packages) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', ...packages];
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], shell: process.platform === 'win32' });
  if (status !== 0) throw new Error(`npm could not install ${packages.join(' ')}`);
}

function buildTree(root) {
  install(root, TREE);
  mkdirSync(join(root, 'packages'));
  for (const name of SOURCES) renameSync(join(root, 'node_modules', name), join(root, 'packages', name));
  writeFileSync(join(root, '.gitignore'), `${IGNORED.join('\n')}\n`);
  beRepository(root);
}

/** A repository without history, so that every tool takes the ignore file for what it is. */
function beRepository(root) {
  mkdirSync(join(root, '.git'), { recursive: true });
  writeFileSync(join(root, '.git/HEAD'), 'ref: refs/heads/main\n');
}

/** Copies (M's path to the new tree's) as a repository of their own. */
function copies(name, wanted) {
  const root = join(base, name);
  if (existsSync(join(root, '.git/HEAD'))) return root;
  console.log(`building the ${name} tree in ${root}`);
  rmSync(root, { recursive: true, force: true });
  for (const [from, to] of wanted) cpSync(join(base, 'tree', from), join(root, to), { recursive: true, filter: (path) => !path.endsWith('/.git') });
  writeFileSync(join(root, '.gitignore'), `${IGNORED.join('\n')}\n`);
  beRepository(root);
  return root;
}

const SMALL = [['node_modules/typescript', 'src/typescript'], ['node_modules/webpack', 'src/webpack'], ['packages/rxjs/src', 'src/rxjs']];
const LARGE = Array.from({ length: 8 }, (_, n) => ['.', `project${n}`]);

export function countFiles(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;
}

export async function corpus() {
  const root = join(base, 'tree');
  const peers = join(base, 'peers');
  if (!existsSync(join(base, 'ready'))) {
    rmSync(base, { recursive: true, force: true });
    console.log(`building the tree in ${base}`);
    buildTree(root);
    install(peers, PEERS);
    writeFileSync(join(base, 'ready'), '');
  }
  const require = createRequire(join(peers, 'package.json'));
  const load = async (name) => await import(pathToFileURL(require.resolve(name)).href);
  const { rgPath } = await load('@vscode/ripgrep');
  const fastGlob = (await load('fast-glob')).default;
  const { glob: tinyglobby } = await load('tinyglobby');
  const roots = { S: copies('small', SMALL), M: root, L: copies('large', LARGE) };
  return { root, roots, rgPath, fastGlob, tinyglobby, fd: which('fd') ?? which('fdfind') };
}

function which(name) {
  return spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0 ? name : undefined;
}

/** Runs a program and gives the lines it printed. */
export async function lines(spawn, command, args, cwd) {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  const pieces = [];
  for await (const piece of child.stdout) pieces.push(piece);
  const text = Buffer.concat(pieces).toString();
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}
