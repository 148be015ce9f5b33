// Every benchmark, each in a process of its own: what one leaves in memory would change the next one's fork.
//   npm run bench [name ...]
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const shared = new Set(['run.mjs', 'measure.mjs', 'corpus.mjs']);
const picked = process.argv.slice(2);
const names = readdirSync(here).filter((name) => name.endsWith('.mjs') && !shared.has(name));
for (const name of names.filter((one) => picked.length === 0 || picked.some((pick) => one.startsWith(pick)))) {
  console.log(`\n==== ${name}`);
  const { status } = spawnSync(process.execPath, ['--expose-gc', `${here}${name}`], { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
