// Runs every test: the core's (Rust, without Node), then the black-box suites in __test__ on this Node.
// `--js` runs only the latter; further arguments pick test files by name.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2);
const picked = args.filter((arg) => !arg.startsWith('--'));
const jsOnly = args.includes('--js') || picked.length > 0;

function run(command, args) {
  console.log(`\n> ${command} ${args.join(' ')}`);
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' });
  if (status !== 0) process.exit(status ?? 1);
}

if (!jsOnly) run('cargo', ['test', '-q', '--workspace', '--no-default-features']);
run('cargo', ['build', '-q', '-p', 'croft-exec', '--examples']);
run('npx', ['tsc', '-p', 'tsconfig.test.json']);
const files = readdirSync(`${root}/dist-test`).filter((name) => name.endsWith('.test.js'));
const chosen = files.filter((name) => picked.length === 0 || picked.some((pick) => name.includes(pick)));
if (chosen.length === 0) {
  console.error(`no test file matches ${picked.join(', ')}`);
  process.exit(1);
}
run(process.execPath, ['--test', ...chosen.map((name) => `dist-test/${name}`)]);
