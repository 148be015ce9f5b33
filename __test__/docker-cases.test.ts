// Every public-bug case about containers, by id, on the live engine; recorded answers stand in for engines in a machine.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CASES, LEFT_OUT } from './support/docker-cases.js';
import { withEngine } from './support/docker.js';

const AREAS = ['DLIFE', 'DIO', 'DFS', 'DNET', 'DSEC', 'DERR', 'EGRESS'];

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

describe('docker', withEngine, () => {
  for (const { id, title } of cases) {
    test(`${id} ${title}`, { skip: LEFT_OUT[id] ?? false, timeout: 110_000 }, async () => await CASES[id]?.());
  }
});
