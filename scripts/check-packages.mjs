// Packs the main and this machine's platform package, installs both tarballs into an empty TypeScript project, and
// compiles and runs the README's first example there, as ESM with full types and from CommonJS with require.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const platform = process.platform === 'linux' ? `linux-${process.arch}-gnu` : `${process.platform}-${process.arch}`;
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));

function run(command, args, cwd) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  console.error(`${command} ${args.join(' ')} failed in ${cwd}\n${stdout}\n${stderr}`);
  process.exit(1);
}

function stageMain(folder) {
  mkdirSync(folder);
  for (const file of manifest.files.filter((name) => existsSync(join(root, name)))) cpSync(join(root, file), join(folder, file), { recursive: true });
  for (const file of ['README.md', 'LICENSE', 'LICENSE-MIT', 'LICENSE-APACHE']) cpSync(join(root, file), join(folder, file));
  const { scripts: _scripts, devDependencies: _dev, ...published } = manifest;
  published.optionalDependencies = { [`croft-${platform}`]: manifest.version };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(published, null, 2));
}

function firstExample() {
  const code = /```ts\n([\s\S]*?)```/.exec(readFileSync(`${root}/README.md`, 'utf8'))?.[1];
  if (!code) throw new Error('README.md has no ```ts example');
  return code;
}

const work = mkdtempSync(join(tmpdir(), 'croft-pack-'));
try {
  run('node', ['scripts/pack.mjs', platform], root);
  stageMain(join(work, 'main'));
  run('npm', ['pack', '--silent', '--pack-destination', work, join(work, 'main')], work);
  run('npm', ['pack', '--silent', '--pack-destination', work, join(root, 'npm', platform)], work);
  const app = join(work, 'app');
  mkdirSync(app);
  const tarballs = [`croft-${manifest.version}.tgz`, `croft-${platform}-${manifest.version}.tgz`].map((name) => `file:${join(work, name)}`);
  const { typescript, '@types/node': nodeTypes } = manifest.devDependencies;
  const dependencies = { croft: tarballs[0], [`croft-${platform}`]: tarballs[1], typescript, '@types/node': nodeTypes };
  const overrides = { [`croft-${platform}`]: tarballs[1] };
  writeFileSync(join(app, 'package.json'), JSON.stringify({ name: 'app', type: 'module', private: true, dependencies, overrides }));
  const options = { target: 'es2022', lib: ['es2023', 'esnext.disposable'], module: 'nodenext', strict: true, skipLibCheck: false, types: ['node'], outDir: 'out' };
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include: ['*.ts', '*.cts'] }));
  writeFileSync(join(app, 'example.ts'), firstExample());
  writeFileSync(join(app, 'common.cjs'), "const { NodeWorkspace, createFsTools } = require('croft');\nconst ws = new NodeWorkspace({ root: '.' });\nconsole.log(createFsTools(ws).map((tool) => tool.name).join(' '));\n");
  run('npm', ['install', '--silent', '--no-audit', '--no-fund'], app);
  run('npx', ['tsc'], app);
  console.log(run('node', ['out/example.js'], app));
  console.log(run('node', ['common.cjs'], app));
} finally {
  rmSync(work, { recursive: true, force: true });
}
