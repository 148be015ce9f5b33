// Every public-bug case about commands, by id, on the host; those about ending also where no cgroup can be made.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { NodeWorkspace } from 'croft';
import { CASES, LEFT_OUT } from './support/process-cases.js';

const AREAS = ['LIFE', 'STDIN', 'PAGER', 'OUT', 'ENV', 'EXIT', 'BG'];

interface Case {
  id: string;
  area: string;
  title: string;
}

const file = fileURLToPath(new URL('../../shared/cases/processes.json', import.meta.url));
const cases = (JSON.parse(readFileSync(file, 'utf8')) as Case[]).filter(({ area }) => AREAS.includes(area));

const withoutCgroup = process.env['CROFT_TEST_WITHOUT_CGROUP'] === '1';
const linux = { skip: process.platform !== 'linux' && 'looks for survivors in /proc' };

test('every case is run or left out with a reason, and nothing else is', () => {
  const ids = cases.map(({ id }) => id).sort();
  assert.deepEqual([...Object.keys(CASES), ...Object.keys(LEFT_OUT)].sort(), ids);
});

describe(withoutCgroup ? 'host, sub-reaper only' : 'host', linux, () => {
  for (const { id, title } of cases.filter(({ area }) => !withoutCgroup || area === 'LIFE')) {
    test(`${id} ${title}`, { skip: LEFT_OUT[id] ?? false, timeout: 60_000 }, async () => await CASES[id]?.());
  }
});

if (withoutCgroup) {
  test('there is no cgroup', () => {
    assert.equal(new NodeWorkspace({ root: '/tmp' }).capabilities().containment, 'subreaper');
  });
} else {
  // A user who may not write the cgroup file system; only root can become one.
  const skip = process.getuid?.() !== 0 && 'needs root, to run as a user without rights';
  test('the cases about ending, as a user who cannot make a cgroup', { skip, timeout: 300_000 }, () => {
    const env: NodeJS.ProcessEnv = { ...process.env, CROFT_TEST_WITHOUT_CGROUP: '1', HOME: '/tmp' };
    delete env['NODE_TEST_CONTEXT'];
    const options = { uid: 65534, gid: 65534, env, encoding: 'utf8', maxBuffer: 1 << 26 } as const;
    const run = spawnSync(process.execPath, ['--test-reporter=tap', fileURLToPath(import.meta.url)], options);
    const failures = run.stdout.split('\n').filter((line) => /^\s*not ok/.test(line));
    assert.equal(run.status, 0, `${failures.join('\n')}\n${run.stderr}\n${run.stdout.slice(-3000)}`);
    assert.match(run.stdout, /^# pass 1[89]$/m);
  });
}
