// Every public-bug case about files on four backends: disk with openat2, disk with openat2 denied by seccomp
// (ENOSYS as under gVisor, EPERM as in old container profiles), and memory.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { NodeWorkspace } from 'croft';
import { CONFIGURATIONS } from './support/configurations.js';
import { checkIds, runConfined, runFileCases } from './support/file-cases.js';

const self = fileURLToPath(import.meta.url);
const denied = process.env['CROFT_TEST_OPENAT2_DENIED'];

if (denied) {
  describe(`disk, openat2 denied with ${denied}`, () => {
    test('the component walk is in force', () => {
      assert.equal(new NodeWorkspace({ root: '.' }).capabilities().resolver, 'walk');
    });
    runFileCases('disk');
  });
  runConfigurations();
} else {
  test('every special check belongs to a case', checkIds);
  describe('disk', () => runFileCases('disk'));
  runConfigurations();
  describe('memory', () => runFileCases('memory'));
  describe('a plain JavaScript provider', () => runFileCases('provider'));
  for (const errno of ['ENOSYS', 'EPERM']) {
    test(`disk, openat2 denied with ${errno}`, { skip: process.platform !== 'linux' && 'openat2 is Linux' }, () => runDenied(errno));
  }
}

function runConfigurations(): void {
  for (const configuration of CONFIGURATIONS) describe(`disk, ${configuration.name}`, () => runConfined(configuration));
}

function runDenied(errno: string): void {
  const launcher = fileURLToPath(new URL('../target/debug/examples/deny_openat2', import.meta.url));
  const env: NodeJS.ProcessEnv = { ...process.env, CROFT_TEST_OPENAT2_DENIED: errno };
  delete env['NODE_TEST_CONTEXT'];
  const run = spawnSync(launcher, [errno, process.execPath, '--test-reporter=tap', self], { env, encoding: 'utf8', maxBuffer: 1 << 28 });
  const count = (name: string): number => Number(new RegExp(`^# ${name} (\\d+)`, 'm').exec(run.stdout)?.[1]);
  const failures = run.stdout.split('\n').filter((line) => /^\s*not ok/.test(line));
  assert.equal(run.status, 0, `${failures.join('\n')}\n${run.stderr}\n${run.stdout.slice(-3000)}`);
  assert.ok(count('pass') > 80 && count('fail') === 0, `pass ${count('pass')}, fail ${count('fail')}`);
}
