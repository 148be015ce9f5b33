/** Exchanges two names in another process while something runs: the attack that path checks lose to. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const swapper = fileURLToPath(new URL('../../target/debug/examples/swap_names', import.meta.url));

/** Runs `body` again and again for `seconds`. Afterwards `a` is again what it was. */
export async function whileSwapping(a: string, b: string, seconds: number, body: () => Promise<unknown>): Promise<void> {
  const wasLink = lstatSync(a).isSymbolicLink();
  const child = spawn(swapper, [a, b], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  try {
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end) await body();
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
    if (lstatSync(a).isSymbolicLink() !== wasLink) execFileSync(swapper, [a, b, 'once'], { stdio: 'ignore' });
  }
}
