// Builds the addon, the croft-exec helper and the TypeScript layer. `--debug` compiles faster, `--native` and
// `--ts` build one part only.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, renameSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const flags = new Set(process.argv.slice(2));
const debug = flags.has('--debug');
const all = !flags.has('--native') && !flags.has('--ts');

function run(command, args, env = {}) {
  const options = { cwd: root, stdio: 'inherit', env: { ...process.env, ...env }, shell: process.platform === 'win32' };
  const { status, error } = spawnSync(command, args, options);
  if (error) console.error(`${command}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

function requireCargo() {
  const { error } = spawnSync('cargo', ['--version'], { stdio: 'ignore' });
  if (!error) return;
  console.error('croft is built from source here and needs Rust 1.88 or later on PATH: https://rustup.rs');
  process.exit(1);
}

function buildAddon() {
  const release = debug ? [] : ['--release'];
  const output = ['--output-dir', 'native', '--js', 'index.cjs', '--dts', 'index.d.cts', '--no-const-enum'];
  run('npx', ['napi', 'build', '--platform', ...release, ...output]);
}

// A static executable: it also runs as the init of a container that has no libc of ours. `--target` keeps the
// flag away from build scripts, and its own target folder keeps the change of flags from rebuilding the addon.
function buildHelper() {
  if (process.platform === 'win32') return;
  const host = /^host: (.*)$/m.exec(spawnSync('rustc', ['-vV'], { encoding: 'utf8' }).stdout)?.[1];
  const target = process.env.CROFT_EXEC_TARGET ?? host;
  const env = process.platform === 'linux' ? { RUSTFLAGS: '-C target-feature=+crt-static' } : {};
  run('cargo', ['build', '-q', '-p', 'croft-exec', '--release', '--target', target, '--target-dir', 'target/exec'], env);
  const built = `${root}/target/exec/${target}/release/croft-exec`;
  // Renamed into place: a helper that is running cannot be written over.
  copyFileSync(built, `${root}/native/croft-exec.new`);
  chmodSync(`${root}/native/croft-exec.new`, 0o755);
  renameSync(`${root}/native/croft-exec.new`, `${root}/native/croft-exec`);
}

requireCargo();
if (all || flags.has('--native')) {
  buildAddon();
  buildHelper();
}
if ((all || flags.has('--ts')) && existsSync(`${root}/node_modules/typescript`)) {
  run('npx', ['tsc', '-p', 'tsconfig.json']);
}
