// Makes a fresh clone runnable: installs what package-lock.json names, then builds. Cheap when nothing changed.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' });
  if (status !== 0) process.exit(status ?? 1);
}

function installed() {
  const marker = `${root}/node_modules/.package-lock.json`;
  return existsSync(marker) && statSync(marker).mtimeMs >= statSync(`${root}/package-lock.json`).mtimeMs;
}

if (!installed()) run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
run(process.execPath, ['scripts/build.mjs']);
