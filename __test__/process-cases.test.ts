// Every public-bug case about commands, by id, on the host.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CASES, LEFT_OUT } from './support/process-cases.js';

const AREAS = ['LIFE', 'STDIN', 'PAGER', 'OUT', 'ENV', 'EXIT', 'BG'];

interface Case {
  id: string;
  area: string;
  title: string;
}

const file = fileURLToPath(new URL('../../shared/cases/processes.json', import.meta.url));
const cases = (JSON.parse(readFileSync(file, 'utf8')) as Case[]).filter(({ area }) => AREAS.includes(area));

test('every case is run or left out with a reason, and nothing else is', () => {
  const ids = cases.map(({ id }) => id).sort();
  assert.deepEqual([...Object.keys(CASES), ...Object.keys(LEFT_OUT)].sort(), ids);
});

describe('host', { skip: process.platform !== 'linux' && 'looks for survivors in /proc' }, () => {
  for (const { id, title } of cases) {
    test(`${id} ${title}`, { skip: LEFT_OUT[id] ?? false, timeout: 60_000 }, async () => await CASES[id]?.());
  }
});
